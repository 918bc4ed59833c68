import { isRefusal } from '../../../engine/limits/decision.js';
import { type CheckEntry, lineageId } from '../../../engine/limits/counter.js';
import type { DecidesTogether } from '../../../engine/limits/limit-feature.js';
import { beginBlock, prolongBlock, View, viewOf } from './counter-view.js';
import { countRefusal, decisionOf, fits, noteRefusal, tellAsker, toMs, waitFor } from './evaluation.js';
import { issuesTickets, type ProcessLoad } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Check, StoreDecision } from '../store.js';
import { endOf } from './block.js';
import type { CounterTable } from './counter-table.js';
import type { KeptByFeatures } from './kept-by-features.js';
import { type Entry, keyOf } from './limit-counters.js';
import { SimpleChecks } from './simple-checks.js';

/**
 * Finds the maximum number of units, up to the cost of the entries, that fit all counters of a check, and sets the views to that cost. If
 * not even one unit fits, sets them to a cost of one and returns 0. `lua/driver/take.lua` does the same.
 */
export function fitMost(
  entries: readonly CheckEntry[],
  views: readonly View[],
  together: DecidesTogether | undefined,
): number {
  const most = entries[0]!.cost;
  let [fitting, beyond] = [0, most + 1];
  const left = leftOf(entries, views, most);
  // The units left are usually the result; two evaluations confirm it.
  let guess = left;
  while (beyond - fitting > 1) {
    const units = guess > fitting && guess < beyond ? guess : Math.floor((fitting + beyond) / 2);
    if (allFit(units, entries, views, together)) fitting = units;
    else beyond = units;
    guess = guess === left ? left + 1 : 0;
  }
  allFit(Math.max(1, fitting), entries, views, together);
  return fitting;
}

/** The units left in all limits that may reject. */
function leftOf(entries: readonly CheckEntry[], views: readonly View[], most: number): number {
  let left = most;
  for (let i = 0; i < entries.length; i++) {
    const { limit, state } = views[i]!;
    if (!limit.shadow) left = Math.min(left, limit.algorithm.remaining(limit.parameters, state));
  }
  return left;
}

/** Evaluates all counters with a cost. Returns true if no limit rejects. */
function allFit(
  units: number,
  entries: readonly CheckEntry[],
  views: readonly View[],
  together: DecidesTogether | undefined,
): boolean {
  for (let i = 0; i < entries.length; i++) {
    const view = views[i]!;
    view.cost = units;
    view.withheld = 0;
    view.allowed = view.block === undefined && fits(view);
  }
  together?.decide(entries, views, waitFor);
  for (let i = 0; i < entries.length; i++) if (isRefusal(entries[i]!.limit, views[i]!)) return false;
  return true;
}

/** The options of a check. */
export interface CheckMode {
  /** True to write nothing. */
  readonly peek: boolean;
  /** True if a rejection begins a block, for limits with `blockFor`. */
  readonly blocks: boolean;
  /** True if decisions contain the time of the charge. */
  readonly refundable: boolean;
  /** True if units are reserved at an estimate, for limits that support it. */
  readonly estimates: boolean;
}

export const MODES = {
  consume: { peek: false, blocks: true, refundable: false, estimates: false },
  consumeRefundable: { peek: false, blocks: true, refundable: true, estimates: false },
  peek: { peek: true, blocks: false, refundable: false, estimates: false },
  reserve: { peek: false, blocks: false, refundable: true, estimates: false },
  hold: { peek: false, blocks: false, refundable: true, estimates: true },
} satisfies Record<string, CheckMode>;

/** The views of up to this many limits are reused by the next check. */
const REUSED_VIEWS = 16;

/** Checks counters of a table: evaluates all limits of a check first, then charges all or none. */
export class Counters {
  private views = newViews(REUSED_VIEWS);
  private simple: SimpleChecks;

  constructor(
    private readonly table: CounterTable,
    /** Milliseconds added to every time to live. */
    private readonly slackMs: number,
    /** The load of the process, for adaptive limits. */
    private readonly load: ProcessLoad,
    /** The data that features keep in addition to the counters. */
    private readonly features: KeptByFeatures,
  ) {
    this.simple = new SimpleChecks(table, slackMs);
  }

  /** Decides a check of one limit. Returns nothing if that takes more than a few steps. */
  one(limit: CompiledLimit, identity: string, cost: number, now: number): StoreDecision | undefined {
    return this.simple.one(limit, identity, cost, now);
  }

  /** Evaluates all limits first, then charges all or none. */
  check(
    { entries, peek = false, refundable = false, hold = false, waits = false, upTo = false }: Check,
    now: number,
  ): StoreDecision[] {
    if (!peek && !hold && !upTo) {
      const decisions = this.simple.check(entries, refundable, now);
      if (decisions !== undefined) return decisions;
    }
    const charging = waits ? MODES.reserve : refundable ? MODES.consumeRefundable : MODES.consume;
    const mode = peek ? MODES.peek : hold ? MODES.hold : charging;
    const views = entries.length <= REUSED_VIEWS ? this.views : newViews(entries.length);
    let charges = true;
    let together: DecidesTogether | undefined;
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!;
      const view = viewOf(this.table, entry, now, views[i]);
      view.cost = entry.cost;
      if (entry.limit.adapts) tellAsker(view, entry, this.load, peek || entry.cost === 0);
      view.allowed = view.block === undefined && fits(view);
      if (isRefusal(entry.limit, view)) charges = false;
      together ??= entry.limit.together;
    }
    if (upTo) return this.takeMost(entries, views, together, mode);
    if (together !== undefined) {
      together.decide(entries, views, waitFor);
      charges = !entries.some(({ limit }, index) => isRefusal(limit, views[index]!));
    }
    return entries.map((_, index) => this.commit(views[index]!, charges, mode));
  }

  /** Takes as many units as fit. */
  private takeMost(
    entries: readonly CheckEntry[],
    views: readonly View[],
    together: DecidesTogether | undefined,
    mode: CheckMode,
  ): StoreDecision[] {
    const taken = fitMost(entries, views, together);
    return entries.map((_, index) => {
      const decision = this.commit(views[index]!, taken > 0, mode);
      decision.taken = taken;
      return decision;
    });
  }

  /** Charges an allowed check unless it only reads, and returns the decision. */
  commit(view: View, charges: boolean, { peek, blocks, refundable, estimates }: CheckMode): StoreDecision {
    const { limit, cost, state } = view;
    const { algorithm, parameters } = limit;
    // An entry with a cost of 0 only reads, regardless of the rest of its check.
    const looks = peek || cost === 0;
    const refused = !view.allowed && blocks && !looks;
    const refusedFirst = refused && limit.blockFor > 0 && view.block === undefined;
    if (refusedFirst) beginBlock(view);
    const struck = limit.strikes && refused && !refusedFirst && view.block !== undefined && prolongBlock(view);
    // A check that can never fit isn't counted.
    const counted = limit.countsRefused && refused && cost <= limit.quota && view.block === undefined;
    if (counted) countRefusal(view);
    const charged = charges && view.allowed && !looks;
    // Delay and ticket describe the time before the charge, `remaining` the time after it.
    const getsTicket = issuesTickets(algorithm);
    if (charged && !getsTicket) algorithm.take(parameters, state, cost);
    let reset = algorithm.resetAfter(parameters, state);
    const decision = decisionOf(view, reset);
    if (refundable && !peek) decision.chargedAt = state.now;
    if (charged && getsTicket) {
      algorithm.take(parameters, state, cost);
      reset = algorithm.resetAfter(parameters, state);
      decision.remaining = Math.max(0, algorithm.remaining(parameters, state));
      if (limit.adapts) decision.inFlight = algorithm.adapting!.inFlight(parameters, state);
      decision.resetAfterMs = toMs(reset);
    }
    if (estimates && charged && limit.estimates !== undefined) decision.ticket = limit.estimates.reserved(view, cost);
    const noted = !view.allowed && !looks && noteRefusal(view);
    if (charged && limit.features !== undefined) this.features.charged(view, cost, state.now);
    if (charged || refusedFirst || struck || counted || noted || (state.migrated && !looks)) this.store(view, reset);
    else {
      if (view.stored !== undefined) {
        if (!looks) this.prolong(view, view.stored, reset);
        this.table.touch(view.stored);
      }
      view.counters.reuse(algorithm, state);
    }
    return decision;
  }

  /** Stores a counter that will be empty in `reset` microseconds. */
  store(view: View, reset = view.limit.algorithm.resetAfter(view.limit.parameters, view.state)): void {
    const { limit, counters, state, stored, reused, corrections } = view;
    if (corrections !== undefined) this.features.stored(view, state.now);
    const block = view.block ?? view.past;
    const { algorithm, parameters, carry } = limit;
    const saved = algorithm.save(parameters, state);
    if (limit.takesCredits) {
      this.table.credits.set(lineageId(limit, view.identity), algorithm.varying!.balance(state));
    }
    let needed = algorithm.keepFor === undefined ? reset : algorithm.keepFor(parameters, state);
    if (view.estimates !== undefined && limit.estimates !== undefined) {
      needed = Math.max(needed, limit.estimates.saved(view));
    }
    const { estimates } = view;
    let lives = block === undefined ? needed : Math.max(needed, endOf(limit, block) - state.now);
    if (estimates !== undefined) lives = Math.max(lives, estimates.until + this.slackMs * 1000 - state.now);
    const key = reused === undefined ? keyOf(view.identity) : reused.key;
    if (reused === undefined) this.table.endBan(counters, key);
    if (lives <= 0) {
      if (reused !== undefined) this.table.delete(reused);
      return;
    }
    const entry = reused ?? counters.make(key);
    const before = entry.state;
    entry.state = needed > 0 ? saved : undefined;
    entry.block = block;
    entry.estimates = estimates;
    // Units that were carried over once are not carried over again, even if another check charges the counter in between.
    const isUsed = needed > 0 && reset > 0;
    entry.carried = isUsed ? (carry ? limit.whole.quota : stored?.carried) : undefined;
    entry.expiresAt = state.now + lives + this.slackMs * 1000;
    this.table.keep(limit, entry);
    // The saved state may refer to the previously stored one.
    if (saved === state) counters.reuse(algorithm, before);
  }

  /** Forgets all counters. */
  clear(): void {
    this.table.clear();
    // The entry of a view would retain all entries that were used before and after it.
    this.views = newViews(REUSED_VIEWS);
    this.simple = new SimpleChecks(this.table, this.slackMs);
  }

  /**
   * Keeps the counter of a rejected check until it is empty, as the rejection reports. Other parameters may have given it less time.
   */
  private prolong({ limit, state }: View, entry: Entry, reset: number): void {
    const needed = limit.algorithm.keepFor?.(limit.parameters, state) ?? reset;
    entry.expiresAt = Math.max(entry.expiresAt, state.now + needed + this.slackMs * 1000);
  }
}

function newViews(length: number): View[] {
  return Array.from({ length }, () => new View());
}
