import { issuesTickets } from '../../algorithms/algorithm.js';
import { isRefusal } from '../../limits/check-result.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { type CheckEntry, counterId } from '../../limits/counter.js';
import type { Check, StoreDecision } from '../store.js';
import { type CounterTable, Entry } from './counter-table.js';
import { beginBlock, keepFor, type View, viewOf } from './counter-view.js';
import { decisionOf, fits, toMs } from './evaluation.js';

/** What a check does besides deciding. */
export interface CheckMode {
  /** It writes nothing. */
  readonly peek: boolean;
  /** A refusal begins the block of a limit with `blockFor`. */
  readonly blocks: boolean;
  /** The decision says when it was charged. */
  readonly refundable: boolean;
}

export const MODES = {
  consume: { peek: false, blocks: true, refundable: false },
  consumeRefundable: { peek: false, blocks: true, refundable: true },
  peek: { peek: true, blocks: false, refundable: false },
  reserve: { peek: false, blocks: false, refundable: true },
} satisfies Record<string, CheckMode>;

/** Checks counters of a table: evaluates all limits of a check first, and then commits all or none. */
export class Counters {
  constructor(
    private readonly table: CounterTable,
    /** Milliseconds added to every time to live. */
    private readonly slackMs: number,
  ) {}

  /** Looks at all limits first, then charges all or none. */
  check({ entries, peek = false, refundable = false }: Check, now: number): StoreDecision[] {
    const mode = peek ? MODES.peek : refundable ? MODES.consumeRefundable : MODES.consume;
    const only = entries[0];
    if (only !== undefined && entries.length === 1) {
      if (!peek && !refundable && isPlain(only.limit)) {
        const decision = this.decidePlainly(only, now);
        if (decision !== undefined) return [decision];
      }
      const view = this.evaluate(only, now);
      return [this.commit(view, !isRefusal(only.limit, view), mode)];
    }
    const views = entries.map((entry) => this.evaluate(entry, now));
    const charges = !views.some((view) => isRefusal(view.limit, view));
    return views.map((view) => this.commit(view, charges, mode));
  }

  /** Charges what is allowed, if the check charges at all, and says what was decided. */
  commit(view: View, charges: boolean, { peek, blocks, refundable }: CheckMode): StoreDecision {
    const { limit, cost, state } = view;
    const { algorithm, parameters } = limit;
    const refusedFirst = !view.allowed && blocks && limit.blockFor > 0 && view.block === undefined;
    if (refusedFirst) beginBlock(view);
    const charged = charges && view.allowed && !peek;
    // The delay and the ticket are from before the charge; `remaining` is from after it.
    const getsTicket = issuesTickets(algorithm);
    if (charged && !getsTicket) algorithm.take(parameters, state, cost);
    const decision = decisionOf(view);
    if (refundable && !peek) decision.chargedAt = state.now;
    if (charged && getsTicket) {
      algorithm.take(parameters, state, cost);
      decision.remaining = Math.max(0, algorithm.remaining(parameters, state));
      decision.resetAfterMs = toMs(algorithm.resetAfter(parameters, state));
    }
    if (charged || refusedFirst || (state.migrated && !peek)) this.store(view);
    else if (view.stored !== undefined) {
      if (!view.allowed && !peek) this.prolong(view.stored, state.now + keepFor(view));
      this.table.touch(view.stored);
    }
    return decision;
  }

  /** Stores a counter as it is now. */
  store(view: View): void {
    const { key, limit, state, block, stored, reused } = view;
    const saved = limit.algorithm.save(limit.parameters, state);
    const needed = keepFor(view);
    const lives = Math.max(needed, block === undefined ? 0 : block.until - state.now);
    if (lives <= 0) {
      this.table.forget(key);
      return;
    }
    const entry = reused ?? new Entry(key);
    entry.state = needed > 0 ? saved : undefined;
    entry.block = block;
    // What was carried over is not carried over again, whoever charges it meanwhile.
    const isUsed = needed > 0 && limit.algorithm.resetAfter(limit.parameters, state) > 0;
    entry.carried = isUsed ? (limit.carry ? limit.quota : stored?.carried) : undefined;
    entry.expiresAt = state.now + lives + this.slackMs * 1000;
    this.table.keep(limit, entry);
  }

  /** As `check`, but with no view made: of a counter that is neither blocked nor carried over. Most are not. */
  private decidePlainly({ limit, identity, cost }: CheckEntry, now: number): StoreDecision | undefined {
    const { algorithm, parameters, quota } = limit;
    const key = counterId(limit, identity);
    const reused = this.table.get(key);
    if (reused !== undefined && (reused.block !== undefined || reused.carried !== undefined)) return undefined;
    const stored = reused === undefined || reused.expiresAt <= now ? undefined : reused;
    const state = algorithm.open(parameters, stored?.state, now);
    const allowed = cost <= quota && algorithm.fits(parameters, state, cost);
    if (allowed) algorithm.take(parameters, state, cost);
    const reset = algorithm.resetAfter(parameters, state);
    if (allowed || state.migrated) {
      // What an entry held may have run out: its place in the table is used again.
      if (reused !== undefined && reset > 0) {
        reused.state = algorithm.save(parameters, state);
        reused.expiresAt = now + reset + this.slackMs * 1000;
        this.table.keep(limit, reused);
      } else {
        const unblocked = { block: undefined, delay: undefined };
        this.store({ limit, identity, key, stored, reused, state, cost, allowed, ...unblocked });
      }
    } else if (stored !== undefined) {
      this.prolong(stored, now + reset);
      this.table.touch(stored);
    }
    return {
      allowed,
      limit: limit.name,
      quota,
      remaining: Math.max(0, algorithm.remaining(parameters, state)),
      retryAfterMs: allowed ? 0 : cost > quota ? Infinity : toMs(algorithm.retryAfter(parameters, state, cost)),
      resetAfterMs: toMs(reset),
      delayMs: 0,
      source: 'memory',
    };
  }

  private evaluate(entry: CheckEntry, now: number): View {
    const view = viewOf(this.table, entry, now);
    view.cost = entry.cost;
    view.allowed = view.block === undefined && fits(view);
    return view;
  }

  /** A counter that refused lives as long as its wait: it was stored under parameters by which it may be fresh sooner. */
  private prolong(entry: Entry, until: number): void {
    entry.expiresAt = Math.max(entry.expiresAt, until + this.slackMs * 1000);
  }
}

/** Whether its counters are as most are: nothing is delayed, blocked, carried over, or kept for longer than it counts. */
function isPlain({ algorithm, blockFor, carry }: CompiledLimit): boolean {
  const isSimple = !issuesTickets(algorithm) && algorithm.keepFor === undefined;
  return isSimple && blockFor === 0 && carry === undefined;
}
