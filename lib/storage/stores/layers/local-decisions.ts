import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { LimitFeature } from '../../../engine/limits/limit-feature.js';
import { decided } from '../decide.js';
import type { Charge, Check, Store, StoreDecision } from '../store.js';
import { StoreErrorPolicies, uncountedDecision } from './store-error-policies.js';

/** Decides what could not be asked where it counts, as the `onStoreError` of each limit says. */
export class LocalDecisions {
  private readonly policies = new StoreErrorPolicies();
  private readonly parts = new WeakMap<CompiledLimit, CompiledLimit>();

  constructor(
    /** Counts in process. */
    readonly store: Store,
    /** The part of each limit that this instance allows while it counts for itself. */
    private readonly share: number,
  ) {}

  /** What happens to units of a limit whose store failed with this error. */
  policyOf(charge: Charge, error: RateLimitStoreError) {
    return this.policies.of(charge, error);
  }

  /** Decides a check that got no answer. Rejects with the error if a limit says so. */
  async decide(check: Check, error: unknown): Promise<StoreDecision[]> {
    if (!(error instanceof RateLimitStoreError) || check.strict === true) throw error;
    const { entries, ...rest } = check;
    const policies = entries.map((entry) => this.policies.of({ ...entry, units: entry.cost }, error));
    if (policies.includes('deny')) throw error;
    const counted = entries.filter((_, index) => policies[index] === 'local');
    const parts = counted.map((entry) => this.partOf(entry));
    const local = counted.length > 0 ? await decided(this.store, { ...rest, entries: parts }) : [];
    return entries.map((entry) => {
      const decision = local[counted.indexOf(entry)] ?? uncountedDecision(entry);
      return { ...decision, source: 'fallback' };
    });
  }

  /**
   * The same counter, of the part of its limit that this instance allows while it counts for itself. It has no features there that
   * only keep something: that would not be found later.
   */
  partOf<C extends Counter>(counter: C): C {
    const { unmet, metBy, features } = counter.limit;
    if (this.share === 1 && !features?.some(isLeftOut)) return counter;
    let limit = this.parts.get(unmet);
    if (limit === undefined) this.parts.set(unmet, (limit = unmet.partOf(this.share)));
    return { ...counter, limit: limit.meet(metBy) };
  }
}

/** Whether a part of a limit lacks a feature. */
function isLeftOut(feature: LimitFeature): boolean {
  return feature.ofPart === undefined && feature.ofOptions !== true;
}
