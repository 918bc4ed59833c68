import { newIdentifier } from '../../algorithms/identifier.js';
import type { State } from '../../algorithms/algorithm.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { Correction } from '../../limits/limit-feature.js';
import type { Refund } from '../store.js';
import { type HeldUnits, Holds, MOST_AT_ONCE, MOST_WHERE_CHARGED } from './held-units.js';
import { noteCorrection } from './kept-by-features.js';

/** The part of a counter's view that holds need. */
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
  // If a plan keeps a window that is over, since the current one is unknown, that is kept without any of them.
  const lapsed = holds.lapsed(state.now, limit.varies && limit.asksForAnchor ? Infinity : MOST_AT_ONCE);
  if (lapsed.length === 0) return;
  view.lapsed = lapsed;
  for (const hold of lapsed) if (comesBack(view, hold)) change(view, -hold.units, hold.chargedAt);
  // Further ones are next.
  if (lapsed.length === MOST_AT_ONCE) state.migrated = true;
}

/** Forgets holds of other windows if the counter is written under these: it may have lost their units. */
export function forgetOthers(view: View): void {
  const { limit, holds } = view;
  if (limit.hold === undefined || holds === undefined || holds.areOf(limit.hold.windows)) return;
  view.holds = undefined;
  view.lapsed = [];
}

/** Holds the units charged to a view. Returns the identifier of the hold. */
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

/** Replaces held units by those really used, once. Returns whether the hold was known. */
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
 * The wait until enough holds have lapsed for a cost to fit, or leave enough to move on; or, if there are too many, until the
 * last of those examined lapses.
 */
export function untilLapsed(view: View, cost: number): number {
  const { limit, state, holds, lapsed } = view;
  const { algorithm, parameters, varies } = limit;
  if (holds === undefined || limit.hold === undefined) return Infinity;
  const { releases } = limit.hold;
  if (releases && lapsed.length === MOST_AT_ONCE) return 1;
  // If more than everything is missing, no lapse makes room at once.
  const fitsLater = !varies || cost <= algorithm.varying!.quota(parameters, state);
  const excess = fitsLater ? cost - algorithm.remaining(parameters, state) : Infinity;
  let returned = 0;
  // If a limit charges what lapses, only units are given back that were reserved before `onLapse` was changed.
  const running = holds.running(state.now, releases ? MOST_AT_ONCE : MOST_WHERE_CHARGED);
  for (const hold of running) {
    const { units, chargedAt, end } = hold;
    if (comesBack(view, hold) && algorithm.holds!.counts(parameters, state, chargedAt, end)) returned += units;
    if (returned >= excess) return end - state.now;
  }
  if (releases && running.length === MOST_AT_ONCE) return running.at(-1)!.end - state.now;
  return varies && returned > 0 ? algorithm.retryAfter(parameters, state, cost, returned) : Infinity;
}

/** Whether units come back when their hold lapses: not those of other windows, which may be long over. */
function comesBack({ limit }: View, { releases, windows }: HeldUnits): boolean {
  return releases && windows === limit.hold!.windows;
}

/** Changes the count where it was charged: never in a later window. */
function change(view: View, difference: number, chargedAt: HeldUnits['chargedAt']): void {
  const { limit, state } = view;
  // Units that the quota keeps for others may have been used, too.
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
