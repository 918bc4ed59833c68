import { isRefusal } from '../../../engine/limits/decision.js';
import type { CheckEntry } from '../../../engine/limits/counter.js';
import type { DecidesTogether } from '../../../engine/limits/limit-feature.js';
import type { View } from './counter-view.js';
import { fits, waitFor } from './evaluation.js';

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
