import { issuesTickets, type State } from '../../../engine/algorithms/algorithm.js';
import { inProportion } from '../../../engine/algorithms/scale.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { withQuota } from '../../../engine/algorithms/share.js';
import { type Counter, lineageId } from '../../../engine/limits/counter.js';
import type { Correction, KeptEstimates, OpenCounter } from '../../../engine/limits/estimates.js';
import { type Block, blockAt, nextBlock, struckBlock } from './block.js';
import type { CounterTable } from './counter-table.js';
import { type Entry, keyOf, type LimitCounters } from './limit-counters.js';

/** The current state of a counter. */
export class View implements Counter, OpenCounter {
  limit!: CompiledLimit;
  identity!: string;
  /** All counters of the limit. */
  counters!: LimitCounters;
  stored: Entry | undefined;
  /** The entry whose place in the table it takes, even if the entry has expired. */
  reused: Entry | undefined;
  state!: State;
  /** The block in force. */
  block: Block | undefined;
  /** The last block, if it is over but its offences still count. */
  past: Block | undefined;
  estimates: KeptEstimates | undefined;
  /** Corrections of earlier charges. The features of the limit get them when the counter is stored. */
  corrections: Correction[] | undefined;
  /** The cost of a check. */
  cost = 0;
  allowed = false;
  /** Units that the check may not use, in addition to its cost. */
  withheld = 0;
  /** The wait for reserved units. */
  delay: number | undefined;
}

/**
 * Opens a counter. As on Redis, expired state is ignored, even if it was not removed yet.
 *
 * @param view is overwritten
 * @param all true to remove all lapsed estimates, false for at most the number that one check removes
 */
export function viewOf(
  table: CounterTable,
  { limit, identity }: Counter,
  now: number,
  view = new View(),
  all = false,
): View {
  const counters = table.of(limit);
  const key = keyOf(identity);
  const reused = counters.get(key);
  const stored = reused === undefined || reused.expiresAt <= now ? undefined : reused;
  // Units that the quota keeps for others count like all others.
  const state = open(limit.whole, stored, now, counters);
  if (limit.varies) bringCredits(table, limit, identity, state);
  view.limit = limit;
  view.identity = identity;
  view.counters = counters;
  view.stored = stored;
  view.reused = reused;
  view.state = state;
  view.block = view.past = undefined;
  view.estimates = stored?.estimates;
  view.corrections = undefined;
  view.cost = 0;
  view.withheld = 0;
  view.allowed = false;
  view.delay = undefined;
  const block = reused === undefined ? table.banOf(counters, key) : stored?.block;
  if (block !== undefined) takeOver(view, block, now);
  if (view.estimates !== undefined) limit.estimates?.opened(view, all);
  return view;
}

/** Credits are stored separately from the counter. */
function bringCredits({ credits }: CounterTable, limit: CompiledLimit, identity: string, state: State): void {
  const { algorithm, parameters, takesCredits } = limit;
  if (takesCredits) algorithm.varying!.bring(parameters, state, credits.of(lineageId(limit, identity)));
}

/** Sets the view to the current state of a stored block. */
export function takeOver(view: View, stored: Block, now: number): void {
  const block = blockAt(view.limit, stored, now);
  if (block === undefined) return;
  // The clock was set back.
  if (block.until < stored.until) view.state.migrated = true;
  if (block.duration > 0) view.block = block;
  else view.past = block;
}

/** The stored state, including units that came back before its window ended. */
function storedState(limit: CompiledLimit, { state, estimates }: Entry, now: number): State | undefined {
  if (state === undefined || estimates === undefined || limit.estimates === undefined) return state;
  return limit.estimates.stored(limit, state, estimates, now);
}

/** The current state, with units left from a smaller quota carried over. */
function open(limit: CompiledLimit, stored: Entry | undefined, now: number, counters: LimitCounters): State {
  const { algorithm, parameters, carry, quota } = limit;
  const known = stored?.estimates === undefined ? stored?.state : storedState(limit, stored, now);
  const before = carry && known && (stored!.carried ?? carry.quotaBefore);
  // A smaller quota never reduces a debt: instances that still use the larger quota would find room there.
  if (before === undefined || before >= quota || algorithm.leases) {
    return counters.open(limit, known, now);
  }
  const old = withQuota(algorithm, parameters, before);
  const state = algorithm.open(old, known, now);
  const left = algorithm.remaining(old, state);
  if (state.burst !== undefined) state.burst = Math.max(state.burst, Math.fround(quota));
  const isProportional = carry!.mode === 'proportional' && left >= 0;
  if (isProportional && algorithm.scaleUsed) {
    algorithm.scaleUsed(parameters, state, quota, before);
    state.migrated = true;
    return state;
  }
  const used = before - left;
  // A debt stays the same.
  const more = left < 0 ? quota - before : isProportional ? inProportion(used, quota, before) - used : 0;
  if (more > 0) {
    algorithm.take(parameters, state, more);
    state.migrated = true;
  }
  return state;
}

/**
 * Begins the block of a rejected check. The counter is empty when the block ends, since used units are forgotten right away. Held leases,
 * departure slots and debt beyond the quota are kept. If the same check would have to wait longer for these, the block lasts that long, so
 * that no request in the meantime extends the wait.
 */
export function beginBlock(view: View): void {
  const { limit, state, cost, past } = view;
  const { algorithm, parameters, quota } = limit;
  if (!issuesTickets(algorithm)) {
    algorithm.give(parameters, state, Math.min(quota, quota - algorithm.remaining(parameters, state)));
  }
  const waits = cost <= quota && algorithm.leases === undefined && !algorithm.fits(parameters, state, cost);
  const wait = waits ? algorithm.retryAfter(parameters, state, cost) : 0;
  view.block = nextBlock(limit, past, wait, state.now);
  view.past = undefined;
}

/** Extends the block of a counter after another attempt. Returns true if it did. */
export function prolongBlock(view: View): boolean {
  const { limit, block, state } = view;
  const struck = struckBlock(limit, block!, state.now);
  view.block = struck;
  return struck !== block;
}
