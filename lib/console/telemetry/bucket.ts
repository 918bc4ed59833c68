/** What is counted for a limit, in the order in which it is stored. */
export const LIMIT_COUNTS = [
  'allowed',
  'refused',
  'shadowRefused',
  'near',
  'candidateRefused',
  'candidateAsked',
] as const;
/** What is counted for checks, in the order in which it is stored. */
export const CHECK_COUNTS = ['checks', 'fallback', 'cache', 'prefetch'] as const;

export type LimitCounts = Record<(typeof LIMIT_COUNTS)[number], number>;
export type CheckCounts = Record<(typeof CHECK_COUNTS)[number], number>;

export function noLimitCounts(): LimitCounts {
  return { allowed: 0, refused: 0, shadowRefused: 0, near: 0, candidateRefused: 0, candidateAsked: 0 };
}

export function noCheckCounts(): CheckCounts {
  return { checks: 0, fallback: 0, cache: 0, prefetch: 0 };
}

/** What happened in a period of time. */
export interface Bucket {
  /** By the labels of limits. */
  readonly limits: Map<string, LimitCounts>;
  readonly checks: CheckCounts;
  /** The number of checks in each class of a `LatencyHistogram`, by the number of the class. */
  readonly latencies: Map<number, number>;
}

export function emptyBucket(): Bucket {
  return { limits: new Map(), checks: noCheckCounts(), latencies: new Map() };
}

/** Adds the counts of one bucket to another. */
export function addBucket(to: Bucket, { limits, checks, latencies }: Bucket): void {
  for (const [label, counts] of limits) {
    const sum = to.limits.get(label);
    if (sum === undefined) to.limits.set(label, { ...counts });
    else for (const name of LIMIT_COUNTS) sum[name] += counts[name];
  }
  for (const name of CHECK_COUNTS) to.checks[name] += checks[name];
  for (const [index, count] of latencies) to.latencies.set(index, (to.latencies.get(index) ?? 0) + count);
}

/** The stored form of a bucket: `[[label, …counts], …], [checks, …], [class, count, …]` as JSON. */
export function writeBucket({ limits, checks, latencies }: Bucket): string {
  return JSON.stringify([
    [...limits].map(([label, counts]) => [label, ...LIMIT_COUNTS.map((name) => counts[name])]),
    CHECK_COUNTS.map((name) => checks[name]),
    [...latencies].flat(),
  ]);
}

/** Reads a stored bucket; `undefined` if it is not one, such as one of another release. */
export function readBucket(text: string): Bucket | undefined {
  try {
    const [limits, checks, latencies] = JSON.parse(text) as [unknown[][], unknown[], unknown[]];
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
    return bucket;
  } catch {
    return undefined;
  }
}

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
}
