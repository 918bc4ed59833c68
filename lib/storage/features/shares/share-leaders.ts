import { inProportion } from '../../../engine/algorithms/scale.js';
import { ACTIVE_SLICES } from './tenant-record.js';

/** An active tenant, as listed in the sums. */
export interface Leader {
  readonly id: string;
  /** The absolute number of the slice with its last request. */
  readonly newest: number;
  readonly weight: number;
  readonly expected: number;
}

/** The terms that determine the parts of a limit's units. */
export interface PartTerms {
  /** The units that come back in a span. */
  readonly shareUnits: number;
  /** The units that each active tenant may always use in a span. */
  readonly floor: number;
}

/** The number of tenants that the sums list individually. */
const MOST_LEADERS = 8;

/** The units that a tenant may use in a span regardless of others, for a sum of the active weights. */
export function partOf({ shareUnits, floor }: PartTerms, weight: number, weights: number): number {
  return Math.min(shareUnits, Math.max(floor, inProportion(shareUnits, weight, weights)));
}

/** Returns true if the expected use of a tenant is more than its part, which others have reduced since its last request. */
export function isBeyondPart(terms: PartTerms, { weight, expected }: Leader, weights: number): boolean {
  // Usually false, which this shows without a division.
  return expected * weights > terms.shareUnits * weight && expected > partOf(terms, weight, weights);
}

/** The active tenants with the highest expected use by weight, after a request of another one. Their parts are exceeded first. */
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
