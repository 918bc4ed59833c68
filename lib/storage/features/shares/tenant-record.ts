import { inProportion } from '../../../engine/algorithms/scale.js';

/** The number of past slices of a limit's span in which the use of tenants is tracked; the current slice is added to these. */
export const SHARE_SLICES = 10;
const AGES = SHARE_SLICES + 1;
/** How many slices a tenant is active after a request: long enough to return after waiting for the oldest slice to end. */
export const ACTIVE_SLICES = AGES + 2;

/** Sums over all tenants but the current one, by the slice of their last request, the newest slice first. */
export interface ShareSums {
  /** The length of a slice in microseconds. */
  readonly length: number;
  /** The absolute number of the newest slice. */
  readonly newest: number;
  /** The weights of the tenants. */
  readonly weights: readonly number[];
  /** The expected use in a span, at most their parts. */
  readonly expected: readonly number[];
  /** The units used in each slice, as far as they were expected. */
  readonly used: readonly number[];
}

/** The requested and granted units of one tenant per slice, the newest first. */
export interface TenantRecord {
  /** The absolute number of the slice with its last request. */
  readonly newest: number;
  /** As in the sums. */
  readonly weight: number;
  /** As in the sums. */
  readonly expected: number;
  readonly used: readonly number[];
  /** One slice more: the units requested in the span before the newest slice are expected in the next one. */
  readonly asked: readonly number[];
}

export function zeros(length: number): number[] {
  return Array.from({ length }, () => 0);
}

export function sum(counts: readonly number[], from: number, to: number): number {
  let total = 0;
  for (let i = from; i < to; i++) total += counts[i]!;
  return total;
}

/** The counts of slices, `by` slices later. */
export function later(counts: readonly number[], by: number): number[] {
  return counts.map((_, age) => (age >= by ? counts[age - by]! : 0));
}

export function emptySums(length: number, newest: number): ShareSums {
  return { length, newest, weights: zeros(ACTIVE_SLICES), expected: zeros(ACTIVE_SLICES), used: zeros(AGES) };
}

export function emptyRecord(newest: number): TenantRecord {
  return { newest, weight: 0, expected: 0, used: zeros(AGES), asked: zeros(AGES + 1) };
}

/** Adds or subtracts a tenant's record. */
export function withRecord(sums: ShareSums, record: TenantRecord, sign: 1 | -1): ShareSums {
  const by = sums.newest - record.newest;
  if (by >= ACTIVE_SLICES) return sums;
  const weights = [...sums.weights];
  const expected = [...sums.expected];
  const used = [...sums.used];
  weights[by] = Math.max(0, weights[by]! + sign * record.weight);
  expected[by] = Math.max(0, expected[by]! + sign * record.expected);
  let left = record.expected;
  // The newest units come first: if a tenant used more than expected, these still count when the older ones no longer do.
  for (let age = 0; age + by < AGES; age++) {
    const counted = Math.min(left, record.used[age]!);
    left -= counted;
    used[age + by] = Math.max(0, used[age + by]! + sign * counted);
  }
  return { ...sums, weights, expected, used };
}

/** The tenants of a counter in process, in the order of their last request. */
export type Tenants = Map<string, TenantRecord>;

/** Maximum number of tenants per counter in process; those with the oldest requests are evicted. */
const MAX_TENANTS = 10_000;

/** Removes tenants that are no longer active, and those beyond the maximum. Returns the sums over the rest. */
export function forgetIdle(tenants: Tenants, sums: ShareSums): ShareSums {
  let left = sums;
  for (const [id, record] of tenants) {
    if (sums.newest - record.newest < ACTIVE_SLICES && tenants.size <= MAX_TENANTS) break;
    tenants.delete(id);
    left = withRecord(left, record, -1);
  }
  return left;
}

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
