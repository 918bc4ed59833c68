/** The number of slices of a limit's span that show what a tenant used, and the current one. */
export const SHARE_SLICES = 10;
const AGES = SHARE_SLICES + 1;
/** For how many slices a tenant is active after it asked: long enough to come back after waiting for the oldest slice to end. */
export const ACTIVE_SLICES = AGES + 2;

/** What all tenants but the current one share: sums over those that last asked in each slice, the newest slice first. */
export interface ShareSums {
  /** The length of a slice in microseconds. */
  readonly length: number;
  /** The absolute number of the newest slice. */
  readonly newest: number;
  /** The weights of the tenants. */
  readonly weights: readonly number[];
  /** The units that they are expected to use in a span, at most their parts. */
  readonly expected: readonly number[];
  /** The units used in each slice, as far as they were expected. */
  readonly used: readonly number[];
}

/** What one tenant asked for and got, by slices, the newest first. */
export interface TenantRecord {
  /** The absolute number of the slice in which it last asked. */
  readonly newest: number;
  /** As in the sums. */
  readonly weight: number;
  /** As in the sums. */
  readonly expected: number;
  readonly used: readonly number[];
  /** One slice more: what was asked in the span before the newest slice is expected in the next one. */
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

/** The sums with a tenant's part added or subtracted. */
export function withRecord(sums: ShareSums, record: TenantRecord, sign: 1 | -1): ShareSums {
  const by = sums.newest - record.newest;
  if (by >= ACTIVE_SLICES) return sums;
  const weights = [...sums.weights];
  const expected = [...sums.expected];
  const used = [...sums.used];
  weights[by] = Math.max(0, weights[by]! + sign * record.weight);
  expected[by] = Math.max(0, expected[by]! + sign * record.expected);
  let left = record.expected;
  // The newest units first: if a tenant used more than expected, these still count when the older ones no longer do.
  for (let age = 0; age + by < AGES; age++) {
    const counted = Math.min(left, record.used[age]!);
    left -= counted;
    used[age + by] = Math.max(0, used[age + by]! + sign * counted);
  }
  return { ...sums, weights, expected, used };
}

/** The tenants of a counter in process, those that asked last at the end. */
export type Tenants = Map<string, TenantRecord>;

/** The most tenants of a counter that are known in process; the ones that asked longest ago are forgotten. */
const MAX_TENANTS = 10_000;

/** Forgets tenants that are active no longer, and those that are too many. Returns the sums over those that are left. */
export function forgetIdle(tenants: Tenants, sums: ShareSums): ShareSums {
  let left = sums;
  for (const [id, record] of tenants) {
    if (sums.newest - record.newest < ACTIVE_SLICES && tenants.size <= MAX_TENANTS) break;
    tenants.delete(id);
    left = withRecord(left, record, -1);
  }
  return left;
}
