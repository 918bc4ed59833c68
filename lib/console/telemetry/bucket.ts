/** The shortest duration that is measured, in milliseconds. */
const SHORTEST_MS = 0.001;
/** Classes per doubling: quantiles are accurate to within 5 %. */
const PER_DOUBLING = 8;
/** The number of classes from a microsecond to more than a minute. */
const CLASSES = 27 * PER_DOUBLING;

/** Durations of checks, in classes whose width grows with the duration. */
export class LatencyHistogram {
  private readonly counts = new Uint32Array(CLASSES);

  add(ms: number): void {
    const index = Math.floor(Math.log2(Math.max(ms, SHORTEST_MS) / SHORTEST_MS) * PER_DOUBLING);
    this.counts[Math.min(index, CLASSES - 1)]!++;
  }

  /** Removes and returns its contents. */
  take(): Map<number, number> {
    const taken = new Map<number, number>();
    for (let index = 0; index < CLASSES; index++) if (this.counts[index]! > 0) taken.set(index, this.counts[index]!);
    this.counts.fill(0);
    return taken;
  }
}

/** The duration that a share of the checks did not exceed, in milliseconds; `null` without checks. */
export function quantile(classes: ReadonlyMap<number, number>, part: number): number | null {
  let left = part * [...classes.values()].reduce((sum, count) => sum + count, 0);
  if (left <= 0) return null;
  for (const [index, count] of [...classes].toSorted(([one], [other]) => one - other)) {
    left -= count;
    // The geometric middle of the class.
    if (left <= 0) return Number((SHORTEST_MS * 2 ** ((index + 0.5) / PER_DOUBLING)).toPrecision(3));
  }
  return null;
}

/** The counts of a limit, in the order in which they are stored. */
export const LIMIT_COUNTS = [
  'allowed',
  'refused',
  'shadowRefused',
  'near',
  'candidateRefused',
  'candidateAsked',
  // For adaptive limits: the number of times that their state was read, and the sums of the units admitted and in flight at these times.
  'looks',
  'admits',
  'inFlight',
] as const;
/** The counts of checks, in the order in which they are stored. */
export const CHECK_COUNTS = ['checks', 'fallback', 'cache', 'prefetch'] as const;

/** The label of all limits that are counted together, because there are too many. */
export const OTHERS = '(others)';
/** Maximum number of characters of a stored bucket: enough for more than 2,000 limits with names of usual length. */
const MOST_STORED = 65_536;

export type LimitCounts = Record<(typeof LIMIT_COUNTS)[number], number>;
export type CheckCounts = Record<(typeof CHECK_COUNTS)[number], number>;

export function noLimitCounts(): LimitCounts {
  return {
    allowed: 0,
    refused: 0,
    shadowRefused: 0,
    near: 0,
    candidateRefused: 0,
    candidateAsked: 0,
    looks: 0,
    admits: 0,
    inFlight: 0,
  };
}

export function noCheckCounts(): CheckCounts {
  return { checks: 0, fallback: 0, cache: 0, prefetch: 0 };
}

/** The counts of a period of time. */
export interface Bucket {
  /** By label of the limit. */
  readonly limits: Map<string, LimitCounts>;
  readonly checks: CheckCounts;
  /** The number of checks in each class of a `LatencyHistogram`, by number of the class. */
  readonly latencies: Map<number, number>;
  /** True if declared limits may have been counted as `(others)`. */
  hides: boolean;
}

export function emptyBucket(): Bucket {
  return { limits: new Map(), checks: noCheckCounts(), latencies: new Map(), hides: false };
}

export function addBucket(to: Bucket, { limits, checks, latencies, hides }: Bucket): void {
  to.hides ||= hides;
  for (const [label, counts] of limits) {
    const sum = to.limits.get(label);
    if (sum === undefined) to.limits.set(label, { ...counts });
    else addCounts(sum, counts);
  }
  for (const name of CHECK_COUNTS) to.checks[name] += checks[name];
  for (const [index, count] of latencies) to.latencies.set(index, (to.latencies.get(index) ?? 0) + count);
}

/** Subtracts counts that a bucket contains. */
export function subtractBucket(from: Bucket, { limits, checks, latencies }: Bucket): void {
  for (const [label, counts] of limits) {
    const left = from.limits.get(label);
    if (left === undefined) continue;
    for (const name of LIMIT_COUNTS) left[name] = Math.max(0, left[name] - counts[name]);
    if (LIMIT_COUNTS.every((name) => left[name] === 0)) from.limits.delete(label);
  }
  for (const name of CHECK_COUNTS) from.checks[name] = Math.max(0, from.checks[name] - checks[name]);
  for (const [index, count] of latencies) {
    const left = (from.latencies.get(index) ?? 0) - count;
    if (left > 0) from.latencies.set(index, left);
    else from.latencies.delete(index);
  }
}

export function isEmpty({ limits, checks }: Bucket): boolean {
  return limits.size === 0 && checks.checks === 0;
}

/**
 * The stored form of a bucket as JSON: `[[label, …counts], …], [checks, …], [class, count, …]`, then 1 if `(others)` may include declared
 * limits, otherwise 0. Zeros at the end of counts are left out. If it is too long, limits with few decisions are stored as `(others)`.
 */
export function writeBucket(bucket: Bucket): string {
  const { checks, latencies } = bucket;
  const rows = rowsOf(bucket.limits);
  const length = rows.reduce((sum, row) => sum + row.length + 1, 0);
  const { limits, hides } = length > MOST_STORED ? shortened(bucket, rows, length) : bucket;
  const written = limits === bucket.limits ? rows : rowsOf(limits);
  const ends = limits.has(OTHERS) ? `,${hides ? 1 : 0}` : '';
  const counts = JSON.stringify(CHECK_COUNTS.map((name) => checks[name]));
  return `[[${written.join(',')}],${counts},${JSON.stringify([...latencies].flat())}${ends}]`;
}

function rowsOf(limits: Bucket['limits']): string[] {
  return [...limits].map(([label, counts]) => {
    const numbers = LIMIT_COUNTS.map((name) => counts[name]);
    return JSON.stringify([label, ...numbers.slice(0, numbers.findLastIndex((count) => count > 0) + 1)]);
  });
}

/** The bucket with fewer limits: those with the fewest decisions are counted as `(others)`. */
function shortened({ limits }: Bucket, rows: readonly string[], length: number): Pick<Bucket, 'limits' | 'hides'> {
  const fewest = [...limits.entries()]
    .map(([label, counts], at) => ({ label, counts, length: rows[at]!.length + 1 }))
    .filter(({ label }) => label !== OTHERS)
    .toSorted((one, other) => decisionsOf(one.counts) - decisionsOf(other.counts));
  const kept = new Map(limits);
  const others = { ...(limits.get(OTHERS) ?? noLimitCounts()) };
  let left = length + OTHERS_LENGTH;
  for (const each of fewest) {
    if (left <= MOST_STORED) break;
    left -= each.length;
    kept.delete(each.label);
    addCounts(others, each.counts);
  }
  return { limits: kept.set(OTHERS, others), hides: true };
}

/** Maximum number of characters of the row of `(others)`. */
const OTHERS_LENGTH = 150;

export function decisionsOf({ allowed, refused, shadowRefused, candidateAsked }: LimitCounts): number {
  return allowed + refused + shadowRefused + candidateAsked;
}

function addCounts(to: LimitCounts, counts: LimitCounts): void {
  for (const name of LIMIT_COUNTS) to[name] += counts[name];
}

/** Reads a stored bucket; `undefined` if it isn't one, for example if another release wrote it. */
export function readBucket(text: string): Bucket | undefined {
  try {
    const [limits, checks, latencies, hides] = JSON.parse(text) as [unknown[][], unknown[], unknown[], unknown];
    const bucket = emptyBucket();
    for (const [label, ...numbers] of limits) {
      const counts = noLimitCounts();
      for (const [at, name] of LIMIT_COUNTS.entries()) counts[name] = countOf(numbers[at]);
      bucket.limits.set(String(label), counts);
    }
    for (const [at, name] of CHECK_COUNTS.entries()) bucket.checks[name] = countOf(checks[at]);
    for (let at = 0; at + 1 < latencies.length; at += 2) {
      bucket.latencies.set(countOf(latencies[at]), countOf(latencies[at + 1]));
    }
    // The previous release did not store this.
    bucket.hides = bucket.limits.has(OTHERS) && hides !== 0;
    return bucket;
  } catch {
    return undefined;
  }
}

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
}
