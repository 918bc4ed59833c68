import { newIdentifier } from '../../algorithms/identifier.js';
import type { State } from '../../algorithms/algorithm.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { Correction } from '../../limits/limit-feature.js';
import type { Refund } from '../store.js';
import { type HeldUnits, Holds, MOST_AT_ONCE, MOST_WHERE_CHARGED } from './held-units.js';
import { noteCorrection } from './kept-by-features.js';

/** What holds need of the view of a counter. */
interface View {
  readonly limit: CompiledLimit;
  readonly identity: string;
  readonly state: State;
  readonly cost: number;
  holds: Holds | undefined;
  lapsed: readonly HeldUnits[];
  corrections: Correction[] | undefined;
}

/** Gives back the units of lapsed holds that were reserved with `onLapse: 'release'`. `lua/driver/holds.lua` does the same. */
export function releaseLapsed(view: View): void {
  const { limit, state, holds } = view;
  if (holds === undefined || limit.hold === undefined) return;
  // What a plan keeps of a window that is over, where nothing says in which one it is now, is kept without all of them.
  const lapsed = holds.lapsed(state.now, limit.varies && limit.asksForAnchor ? Infinity : MOST_AT_ONCE);
  if (lapsed.length === 0) return;
  view.lapsed = lapsed;
  for (const hold of lapsed) if (comesBack(view, hold)) change(view, -hold.units, hold.chargedAt);
  // Those behind them are next.
  if (lapsed.length === MOST_AT_ONCE) state.migrated = true;
}

/** What is held of other windows is settled no more where the counter is written under these: it may have lost its units. */
export function forgetOthers(view: View): void {
  const { limit, holds } = view;
  if (limit.hold === undefined || holds === undefined || holds.areOf(limit.hold.windows)) return;
  view.holds = undefined;
  view.lapsed = [];
}

/** Holds what a view was charged. Returns the identifier of the hold. */
export function holdUnits(view: View): number {
  const { limit, state, cost } = view;
  const { algorithm, parameters } = limit;
  const { duration, known, windows, releases } = limit.hold!;
  const { now } = state;
  const id = newIdentifier();
  forgetOthers(view);
  const needed = algorithm.keepFor?.(parameters, state) ?? algorithm.resetAfter(parameters, state);
  view.holds ??= new Holds();
  view.holds.add(
    { id, units: cost, windows, releases, chargedAt: now, end: now + duration },
    now,
    now + Math.max(needed, known),
    releases || view.lapsed.length === MOST_AT_ONCE,
  );
  return id;
}

/** Replaces units that are held by those that were really used, once. Says whether they were known. */
export function settleHold(view: View, { units, ticket, chargedAt, actual = 0 }: Refund): boolean {
  const { holds } = view;
  const found = holds?.find(ticket!, units, chargedAt!, view.limit.hold!.windows);
  if (holds === undefined || found === undefined) return false;
  const { hold, isReleased } = found;
  const cameBack = comesBack(view, hold) && (isReleased || view.lapsed.includes(hold));
  change(view, actual - (cameBack ? 0 : units), hold.chargedAt);
  holds.remove(hold);
  return true;
}

/**
 * The wait until so many holds have lapsed that a cost fits, or leave enough to move on; or, of too many, that the last lapses of those
 * that were looked at.
 */
export function untilLapsed(view: View, cost: number): number {
  const { limit, state, holds, lapsed } = view;
  const { algorithm, parameters, varies } = limit;
  if (holds === undefined || limit.hold === undefined) return Infinity;
  const { releases } = limit.hold;
  if (releases && lapsed.length === MOST_AT_ONCE) return 1;
  // Of more than all no lapse makes room at once.
  const fitsLater = !varies || cost <= algorithm.varying!.quota(parameters, state);
  const excess = fitsLater ? cost - algorithm.remaining(parameters, state) : Infinity;
  let returned = 0;
  // Of a limit that charges what lapses, only those are given back that were reserved before `onLapse` was changed.
  const running = holds.running(state.now, releases ? MOST_AT_ONCE : MOST_WHERE_CHARGED);
  for (const hold of running) {
    const { units, chargedAt, end } = hold;
    if (comesBack(view, hold) && algorithm.holds!.counts(parameters, state, chargedAt, end)) returned += units;
    if (returned >= excess) return end - state.now;
  }
  if (releases && running.length === MOST_AT_ONCE) return running.at(-1)!.end - state.now;
  return varies && returned > 0 ? algorithm.retryAfter(parameters, state, cost, returned) : Infinity;
}

/** Whether units come back when their hold lapses: not those of other windows, which they may have left long ago. */
function comesBack({ limit }: View, { releases, windows }: HeldUnits): boolean {
  return releases && windows === limit.hold!.windows;
}

/** Changes what counts where it was charged: never in a window behind that one. */
function change(view: View, difference: number, chargedAt: HeldUnits['chargedAt']): void {
  const { limit, state } = view;
  // What is kept of the quota for others may have been used, too.
  const { algorithm, parameters, quota } = limit.whole;
  const { holds } = algorithm;
  noteCorrection(view, difference, chargedAt);
  if (!holds!.counts(parameters, state, chargedAt, state.now)) {
    holds!.correct?.(parameters, state, chargedAt, difference);
  } else if (difference < 0) {
    algorithm.give(parameters, state, -difference, undefined, chargedAt);
  } else if (difference > 0) {
    const most = holds!.most?.(parameters) ?? Number.MAX_SAFE_INTEGER;
    const counted = quota - algorithm.remaining(parameters, state);
    const units = Math.max(0, Math.min(difference, most - counted));
    if (holds!.take === undefined) algorithm.take(parameters, state, units);
    else holds!.take(parameters, state, units);
  }
}
