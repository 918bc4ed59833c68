import { inProportion } from './scale.js';
import { ACTIVE_SLICES } from './tenant-record.js';

/** An active tenant, as its record stands in the sums. */
export interface Leader {
  readonly id: string;
  /** The absolute number of the slice in which it asked last. */
  readonly newest: number;
  readonly weight: number;
  readonly expected: number;
}

/** What parts of a limit's units are made of. */
export interface PartTerms {
  /** The units that come back in a span. */
  readonly shareUnits: number;
  /** The units that each active tenant may use in a span at least. */
  readonly floor: number;
}

/** The number of tenants that the sums know by name. */
const MOST_LEADERS = 8;

/** The units that a tenant may use in a span, whatever others do, where the active tenants weigh so much together. */
export function partOf({ shareUnits, floor }: PartTerms, weight: number, weights: number): number {
  return Math.min(shareUnits, Math.max(floor, inProportion(shareUnits, weight, weights)));
}

/** Whether more is expected of a tenant than its part, since others made that smaller after it asked. */
export function isBeyondPart(terms: PartTerms, { weight, expected }: Leader, weights: number): boolean {
  // Most are not, which this tells without a division.
  return expected * weights > terms.shareUnits * weight && expected > partOf(terms, weight, weights);
}

/** The active tenants of whom most is expected by weight, once another one has asked: their parts are the first that others make smaller. */
export function withLeader(leaders: readonly Leader[], own: Leader): readonly Leader[] {
  const others = leaders.filter(({ id, newest }) => id !== own.id && own.newest - newest < ACTIVE_SLICES);
  if (others.length < MOST_LEADERS) return [...others, own];
  let last = 0;
  for (let i = 1; i < others.length; i++) if (rankOf(others[i]!) < rankOf(others[last]!)) last = i;
  if (rankOf(own) > rankOf(others[last]!)) others[last] = own;
  return others;
}

function rankOf({ expected, weight }: Leader): number {
  return expected / weight;
}
