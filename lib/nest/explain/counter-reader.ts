import { issuesTickets } from '../../engine/algorithms/algorithm.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { explainedByFeatures } from '../../storage/features/index.js';
import { withExpectedWait } from '../../app/limiter/hold-times.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type CheckEntry, togetherOf } from '../../engine/limits/counter.js';
import { decided } from '../../storage/stores/decide.js';
import type { Store, StoreDecision } from '../../storage/stores/store.js';
import { reasonOf } from '../../engine/util/reason-of.js';
import type { AskedLimit } from './asked-limit.js';
import type { CounterState, ExplainedDecision } from './explanation.js';
import { listDecision } from './list-decisions.js';

/** The state of a counter, or why it could not be read. */
export interface CounterReading {
  readonly state?: CounterState;
  readonly decision?: ExplainedDecision;
  readonly unread?: string;
}

/** Looks at counters until a deadline. Charges and writes nothing. */
export class CounterReader {
  constructor(
    private readonly store: Store,
    private readonly timeoutMs: number,
    /** Requests learn how long units of `concurrency` will probably be held, code how long they can be. */
    private readonly ofRequest: boolean,
  ) {}

  /** Why the counters that instances share cannot be read, if that is already known. */
  failure: string | undefined;
  /** The part of the store's time that has passed, in milliseconds. Functions of the app use up their own. */
  spentMs = 0;

  /** Reads what a limit would be asked about; empty if its identity is unknown, or it is not asked. */
  async read(asked: AskedLimit, beside: readonly AskedLimit[] = []): Promise<CounterReading> {
    const { status, limit, identity, cost, priority, list } = asked;
    if (identity === undefined || status === 'off') return {};
    if (list !== undefined) return { decision: listDecision(list) };
    if (this.failure !== undefined && !limit.instance) return { unread: this.failure };
    const entry = { limit, identity, cost: cost ?? 1, priority };
    const { timeoutMs, spentMs } = this;
    try {
      const others = beside.flatMap((each) => (each === asked ? [] : entryOf(each)));
      // Where a feature decides, what one may take depends on the limits beside it, and what it has left on those, too.
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

  /** Reads both in one turn, so that they take the time of one. */
  private look(entries: readonly CheckEntry[]): Promise<[StoreDecision, number | undefined, object]> {
    const { store, spentMs } = this;
    const since = performance.now() - spentMs;
    const looking = decided(store, { entries, peek: true, strict: true, since }).then(([decision]) => decision!);
    return Promise.all([looking, store.blockedFor?.(entries[0]!), explainedByFeatures(store, entries[0]!)]);
  }

  private decision(looked: StoreDecision, entry: CheckEntry, blockedForMs: number | undefined): ExplainedDecision {
    const expected = this.ofRequest ? withExpectedWait(looked, entry, performance.now()) : looked;
    const { allowed, delayMs } = expected;
    const { limit } = entry;
    let { retryAfterMs } = expected;
    const blocks = !allowed && limit.blockFor > 0 && blockedForMs === 0;
    // A block clears what was used, but nothing that is queued or held; what can never fit stays so.
    const outlasting = issuesTickets(limit.algorithm) || !Number.isFinite(retryAfterMs) ? retryAfterMs : 0;
    if (blocks) retryAfterMs = Math.max(Math.ceil(nextBlock(limit, looked) / 1000), outlasting);
    const wait = Number.isFinite(retryAfterMs) ? retryAfterMs : null;
    return { allowed, retryAfterMs: wait, delayMs, ...(blocks ? { blocks } : {}) };
  }
}

/** How long the block would last that a refusal begins, in microseconds. */
function nextBlock({ blockFor, escalation }: CompiledLimit, { offences = 0 }: StoreDecision): number {
  if (escalation === undefined) return blockFor;
  const { steps } = escalation;
  return steps[Math.min(offences, steps.length - 1)]!;
}

/** The entry for a limit that is asked beside others, if it is. */
function entryOf({ status, limit, identity, cost, priority, list }: AskedLimit): CheckEntry[] {
  if (status !== 'asked' || identity === undefined || cost === undefined || list !== undefined) return [];
  return [{ limit, identity, cost, priority }];
}
