import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { STORE_ERROR_POLICIES, type StoreErrorPolicy } from '../../../engine/limits/limit-settings.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { Charge, Check, Store, StoreDecision } from '../store.js';
import { openDecision } from '../store-decision.js';
import { type Layer, layerOf } from './store-layer.js';
import { Attempts, logger } from '../../../engine/errors/logger.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { shownIdentity } from '../../../engine/limits/hierarchy.js';

/** Decides checks that the store failed to answer, by the `onStoreError` of each limit. */
export class LocalDecisions {
  /** A function of the app may fail on each check. */
  private readonly attempts = new Attempts(logger);
  private readonly parts = new WeakMap<CompiledLimit, CompiledLimit>();

  /** The store in memory. */
  readonly store: Layer;

  constructor(
    local: Store,
    /** The share of each limit that this instance allows while it counts locally. */
    private readonly share: number,
  ) {
    this.store = layerOf(local);
  }

  /** The policy for units of a limit whose store failed with this error. A shadow limit never rejects. */
  policyOf(charge: Charge, error: RateLimitStoreError): StoreErrorPolicy {
    const policy = this.chosen(charge, error);
    return policy === 'deny' && charge.limit.shadow ? 'allow' : policy;
  }

  /** An error of the app's function must not fail the request. */
  private chosen(charge: Charge, error: RateLimitStoreError): StoreErrorPolicy {
    const { limit, units } = charge;
    const { onStoreError, name } = limit;
    if (typeof onStoreError !== 'function') return onStoreError;
    const choose = () => onStoreError(error, { limit: name, key: shownIdentity(charge), cost: units });
    const texts = { message: messages.policyFailed(name), wrong: messages.wrongPolicy };
    return this.attempts.call(choose, isPolicy, texts) ?? 'local';
  }

  /** Decides a check that got no answer. Rejects with the error if the policy of a limit is `'deny'`. */
  async decide(check: Check, error: unknown): Promise<StoreDecision[]> {
    if (!(error instanceof RateLimitStoreError) || check.strict === true) throw error;
    const { entries, ...rest } = check;
    const policies = entries.map((entry) => this.policyOf({ ...entry, units: entry.cost }, error));
    if (policies.includes('deny')) throw error;
    const counted = entries.filter((_, index) => policies[index] === 'local');
    const parts = counted.map((entry) => this.partOf(entry));
    const local = counted.length > 0 ? await this.store.decided({ ...rest, entries: parts }) : [];
    return entries.map((entry) => {
      const decision = local[counted.indexOf(entry)] ?? openDecision(entry.limit);
      return { ...decision, source: 'fallback' };
    });
  }

  /**
   * The same counter, with the share of the limit that this instance allows while it counts locally. Features that only record data are
   * left out, because nobody would find their data later.
   */
  partOf<C extends Counter>(counter: C): C {
    const { unmet, metBy, features } = counter.limit;
    const leavesOut = features?.some((feature) => feature.ofPart === undefined && feature.ofOptions !== true);
    if (this.share === 1 && leavesOut !== true) return counter;
    let limit = this.parts.get(unmet);
    if (limit === undefined) this.parts.set(unmet, (limit = unmet.partOf(this.share)));
    return { ...counter, limit: limit.meet(metBy) };
  }
}

const isPolicy = (got: StoreErrorPolicy) => STORE_ERROR_POLICIES.includes(got);
