import { issuesTickets, type State } from '../../algorithms/algorithm.js';
import { inProportion } from '../../algorithms/scale.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { withQuota } from '../../limits/limit-parameters.js';
import { type Counter, lineageId } from '../../limits/counter.js';
import type { Correction } from '../../limits/limit-feature.js';
import { type Block, blockAt, nextBlock } from './block.js';
import type { CounterTable } from './counter-table.js';
import type { HeldUnits, Holds } from './held-units.js';
import { releaseLapsed } from './holding.js';
import { type Entry, keyOf, type LimitCounters } from './limit-counters.js';

const NONE: readonly HeldUnits[] = [];

/** A counter as of now. */
export class View implements Counter {
  limit!: CompiledLimit;
  identity!: string;
  /** All counters of the limit. */
  counters!: LimitCounters;
  stored: Entry | undefined;
  /** The entry whose place it has in the table, even if what it held has run out. */
  reused: Entry | undefined;
  state!: State;
  /** The block that is in force. */
  block: Block | undefined;
  /** The last block, if it is over and its offences are not forgotten. */
  past: Block | undefined;
  /** Units that are held; and those whose hold has lapsed, which the state counts no longer. */
  holds: Holds | undefined;
  lapsed: readonly HeldUnits[] = NONE;
  /** Changes of what it was charged before, of a limit with features: they are called with these when it is stored. */
  corrections: Correction[] | undefined;
  /** What a check asks for, and whether it fits. */
  cost = 0;
  allowed = false;
  /** The units that it keeps from the check, besides what it was asked for. */
  met = 0;
  /** How long units that are reserved have to be waited for. */
  delay: number | undefined;
}

/**
 * Looks at a counter. As on Redis, what has run out is gone, whether it was swept or not.
 *
 * @param view is written over
 */
export function viewOf(table: CounterTable, { limit, identity }: Counter, now: number, view = new View()): View {
  const counters = table.of(limit);
  const key = keyOf(identity);
  const reused = counters.get(key);
  const stored = reused === undefined || reused.expiresAt <= now ? undefined : reused;
  // What is kept of the quota for others counts as much as all the rest.
  const state = open(limit.whole, stored, now, counters);
  if (limit.varies) bringCredits(table, limit, identity, state);
  view.limit = limit;
  view.identity = identity;
  view.counters = counters;
  view.stored = stored;
  view.reused = reused;
  view.state = state;
  view.block = view.past = undefined;
  view.holds = stored?.holds;
  view.lapsed = NONE;
  view.corrections = undefined;
  view.cost = 0;
  view.met = 0;
  view.allowed = false;
  view.delay = undefined;
  const block = reused === undefined ? table.banOf(counters, key) : stored?.block;
  if (block !== undefined) takeOver(view, block, now);
  if (view.holds !== undefined) releaseLapsed(view);
  return view;
}

/** Credits stand beside the counter. */
function bringCredits({ credits }: CounterTable, limit: CompiledLimit, identity: string, state: State): void {
  const { algorithm, parameters, takesCredits } = limit;
  if (takesCredits) algorithm.varying!.bring(parameters, state, credits.of(lineageId(limit, identity)));
}

/** Takes over a stored block as of now. */
export function takeOver(view: View, stored: Block, now: number): void {
  const block = blockAt(view.limit, stored, now);
  if (block === undefined) return;
  // The clock was set back.
  if (block.until < stored.until) view.state.migrated = true;
  if (block.duration > 0) view.block = block;
  else view.past = block;
}

/** What is stored, with what came back before its window ended, if that is over. */
function endedState({ algorithm, parameters, hold }: CompiledLimit, { state, holds }: Entry, now: number) {
  if (state === undefined || holds === undefined || hold === undefined) return state;
  return algorithm.holds?.ended?.(parameters, state, now, holds) ?? state;
}

/** The state as of now, with what was left of a smaller quota carried over. */
function open(limit: CompiledLimit, stored: Entry | undefined, now: number, counters: LimitCounters): State {
  const { algorithm, parameters, carry, quota } = limit;
  const before = carry && stored?.state && (stored.carried ?? carry.quotaBefore);
  // A smaller quota makes no debt smaller: instances that still decide by the larger one would find it as room.
  if (before === undefined || before >= quota || algorithm.holding) {
    return counters.open(limit, stored?.holds === undefined ? stored?.state : endedState(limit, stored, now), now);
  }
  const old = withQuota(algorithm, parameters, before);
  const state = algorithm.open(old, stored?.state, now);
  const left = algorithm.remaining(old, state);
  if (state.burst !== undefined) state.burst = Math.max(state.burst, Math.fround(quota));
  const isProportional = carry!.mode === 'proportional' && left >= 0;
  if (isProportional && algorithm.scaleUsed) {
    algorithm.scaleUsed(parameters, state, quota, before);
    state.migrated = true;
    return state;
  }
  const used = before - left;
  // A debt stays as it was.
  const more = left < 0 ? quota - before : isProportional ? inProportion(used, quota, before) - used : 0;
  if (more > 0) {
    algorithm.take(parameters, state, more);
    state.migrated = true;
  }
  return state;
}

/**
 * Begins the block of a check that is refused. The counter begins anew when it ends: what was used is forgotten at once. What
 * is still to come stays: leases that are held, departure slots, and what is owed beyond the quota. If the same check would
 * have to wait longer for that, the block lasts as long, so that nothing that is asked meanwhile lengthens its wait.
 */
export function beginBlock(view: View): void {
  const { limit, state, cost, past } = view;
  const { algorithm, parameters, quota } = limit;
  if (!issuesTickets(algorithm)) {
    algorithm.give(parameters, state, Math.min(quota, quota - algorithm.remaining(parameters, state)));
  }
  const waits = cost <= quota && algorithm.holding === undefined && !algorithm.fits(parameters, state, cost);
  const wait = waits ? algorithm.retryAfter(parameters, state, cost) : 0;
  view.block = nextBlock(limit, past, wait, state.now);
  view.past = undefined;
}
