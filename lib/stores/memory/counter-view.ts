import { issuesTickets, type State } from '../../algorithms/algorithm.js';
import { inProportion } from '../../algorithms/scale.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { type Counter, counterId } from '../../limits/counter.js';
import type { Block, CounterTable, Entry } from './counter-table.js';

/** A counter as of now. */
export interface View extends Counter {
  readonly key: string;
  readonly stored: Entry | undefined;
  /** The entry whose place it has in the table, even if what it held has run out. */
  readonly reused: Entry | undefined;
  readonly state: State;
  block: Block | undefined;
  /** What a check asks for, and whether it fits. */
  cost: number;
  allowed: boolean;
  /** How long units that are reserved have to be waited for. */
  delay: number | undefined;
}

/** Looks at a counter. As on Redis, what has run out is gone, whether it was swept or not. */
export function viewOf(table: CounterTable, { limit, identity }: Counter, now: number): View {
  const key = counterId(limit, identity);
  const reused = table.get(key);
  const stored = reused === undefined || reused.expiresAt <= now ? undefined : reused;
  const state = open(limit, stored, now);
  let block = stored?.block;
  if (block !== undefined && block.until <= now) block = undefined;
  if (block !== undefined && block.until > now + block.duration) {
    // The clock was set back: the block ends no later than if it had just begun.
    block = { until: now + block.duration, duration: block.duration };
    state.migrated = true;
  }
  return { limit, identity, key, stored, reused, state, block, cost: 0, allowed: false, delay: undefined };
}

/** How long the state has to be kept, in microseconds. */
export function keepFor({ limit: { algorithm, parameters }, state }: View): number {
  return algorithm.keepFor?.(parameters, state) ?? algorithm.resetAfter(parameters, state);
}

/** The state as of now, with what was left of a smaller quota carried over. */
function open({ algorithm, parameters, carry, quota }: CompiledLimit, stored: Entry | undefined, now: number): State {
  const before = carry && stored?.state && (stored.carried ?? carry.quotaBefore);
  // A smaller quota makes no debt smaller: instances that still decide by the larger one would find it as room.
  if (before === undefined || before >= quota || algorithm.holding) {
    return algorithm.open(parameters, stored?.state, now);
  }
  const old = algorithm.withQuota?.(parameters, before) ?? { ...parameters, quota: before };
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
  const { limit, state, cost } = view;
  const { algorithm, parameters, quota } = limit;
  if (!issuesTickets(algorithm)) {
    algorithm.give(parameters, state, Math.min(quota, quota - algorithm.remaining(parameters, state)));
  }
  const waits = cost <= quota && algorithm.holding === undefined && !algorithm.fits(parameters, state, cost);
  const wait = waits ? algorithm.retryAfter(parameters, state, cost) : 0;
  view.block = blockFor(Math.max(limit.blockFor, wait), state);
}

/** A block from now on; none of no time. */
export function blockFor(duration: number, { now }: State): Block | undefined {
  return duration > 0 ? { until: now + duration, duration } : undefined;
}
