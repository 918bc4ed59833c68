import { issuesTickets } from '../../engine/algorithms/algorithm.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { explainedByFeatures } from '../../storage/features/index.js';
import { withExpectedWait } from '../../app/limiter/lease.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type CheckEntry, togetherOf } from '../../engine/limits/counter.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { StoreDecision } from '../../storage/stores/store.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { AskedLimit } from './asked-limit.js';
import type { CounterState, ExplainedDecision } from './explanation.js';
import { listDecision } from './list-decisions.js';

/** The state of a counter, or the reason why it could not be read. */
export interface CounterReading {
  readonly state?: CounterState;
  readonly decision?: ExplainedDecision;
  readonly unread?: string;
}

/** Reads counters until a deadline. Charges and writes nothing. */
export class CounterReader {
  constructor(
    private readonly store: Layer,
    private readonly timeoutMs: number,
    /** True for requests, which report how long units of `concurrency` will probably be held. Code reports how long they may be held. */
    private readonly ofRequest: boolean,
  ) {}

  /** The reason why the counters that instances share cannot be read, if that is already known. */
  failure: string | undefined;
  /** The part of the store's time that has passed, in milliseconds. Functions of the app have their own time. */
  spentMs = 0;

  /** Reads the counter for a limit's check; empty if its identity is unknown, or the limit is not checked. */
  async read(asked: AskedLimit, beside: readonly AskedLimit[] = []): Promise<CounterReading> {
    const { status, limit, identity, cost, priority, list } = asked;
    if (identity === undefined || status === 'off') return {};
    if (list !== undefined) return { decision: listDecision(list) };
    if (this.failure !== undefined && !limit.instance) return { unread: this.failure };
    const entry = { limit, identity, cost: cost ?? 1, priority };
    const { timeoutMs, spentMs } = this;
    try {
      const others = beside.flatMap((each) => (each === asked ? [] : entryOf(each)));
      // If a feature decides, the result and the remaining units may depend on the limits checked in the same call.
      const together = togetherOf([entry, ...others]);
      const entries = together === undefined ? [entry] : [entry, ...others];
      const [looked, blockedForMs, more] = await withDeadline(this.look(entries), timeoutMs - spentMs, timeoutMs);
      const { quota, remaining, resetAfterMs, offences, inFlight, credits, source } = looked;
      const state = {
        remaining,
        resetAfterMs,
        ...(blockedForMs === undefined ? {} : { blockedForMs }),
        ...(offences === undefined ? {} : { offences }),
        ...(inFlight === undefined ? {} : { quota, inFlight }),
        ...(limit.varies && inFlight === undefined ? { quota } : {}),
        ...(credits === undefined ? {} : { credits }),
        source,
        ...more,
      };
      return cost === undefined ? { state } : { state, decision: this.decision(looked, entry, blockedForMs) };
    } catch (error) {
      return { unread: reasonOf(error) };
    }
  }

  /** Reads the counter of its candidate, if it has one and no list decides. */
  async readCandidate(asked: AskedLimit): Promise<CounterReading> {
    const { candidate } = asked.limit;
    return candidate === undefined || asked.list !== undefined ? {} : this.read({ ...asked, limit: candidate });
  }

  /** Reads both in the same turn, so that they take only as long as one. */
  private look(entries: readonly CheckEntry[]): Promise<[StoreDecision, number | undefined, object]> {
    const { store, spentMs } = this;
    const since = performance.now() - spentMs;
    const looking = store.decided({ entries, peek: true, strict: true, since }).then(([decision]) => decision!);
    return Promise.all([looking, store.blockedFor?.(entries[0]!), explainedByFeatures(store, entries[0]!)]);
  }

  private decision(looked: StoreDecision, entry: CheckEntry, blockedForMs: number | undefined): ExplainedDecision {
    const expected = this.ofRequest ? withExpectedWait(looked, entry, performance.now()) : looked;
    const { allowed, delayMs } = expected;
    const { limit } = entry;
    let { retryAfterMs } = expected;
    const blocks = !allowed && limit.blockFor > 0 && blockedForMs === 0;
    // A block clears the units that were used, but not those that are queued or held. A cost that can never fit still doesn't.
    const outlasting = issuesTickets(limit.algorithm) || !Number.isFinite(retryAfterMs) ? retryAfterMs : 0;
    if (blocks) retryAfterMs = Math.max(Math.ceil(nextBlock(limit, looked) / 1000), outlasting);
    const wait = Number.isFinite(retryAfterMs) ? retryAfterMs : null;
    return { allowed, retryAfterMs: wait, delayMs, ...(blocks ? { blocks } : {}) };
  }
}

/** The duration of the block that a rejection would start, in microseconds. */
function nextBlock({ blockFor, escalation }: CompiledLimit, { offences = 0 }: StoreDecision): number {
  if (escalation === undefined) return blockFor;
  const { steps } = escalation;
  return steps[Math.min(offences, steps.length - 1)]!;
}

/** The entry of a limit that is checked together with others, or none if it isn't checked. */
function entryOf({ status, limit, identity, cost, priority, list }: AskedLimit): CheckEntry[] {
  if (status !== 'asked' || identity === undefined || cost === undefined || list !== undefined) return [];
  return [{ limit, identity, cost, priority }];
}
