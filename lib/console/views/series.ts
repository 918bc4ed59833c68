import type { LimitSeries, LimitTotals, Series } from '../api.js';
import { addBucket, type Bucket, emptyBucket, LIMIT_COUNTS, type LimitCounts, quantile } from '../telemetry/bucket.js';

/** The counts of several instances, by step. */
export class Steps {
  private readonly buckets = new Map<number, Bucket>();

  /** By instance: the labels that it counted separately, and if it counted other declared limits together. */
  private readonly sources = new Map<string, { labels: Set<string>; hides: boolean }>();

  /** @param source the instance whose counts these are */
  add(step: number, bucket: Bucket, source: string): void {
    let known = this.sources.get(source);
    if (known === undefined) this.sources.set(source, (known = { labels: new Set(), hides: false }));
    for (const label of bucket.limits.keys()) known.labels.add(label);
    known.hides ||= bucket.hides;
    let sum = this.buckets.get(step);
    if (sum === undefined) this.buckets.set(step, (sum = emptyBucket()));
    addBucket(sum, bucket);
  }

  /** The sum of a step. */
  at(step: number): Bucket | undefined {
    return this.buckets.get(step);
  }

  /** Those of the labels whose decisions an instance may have counted only as `(others)`. */
  hiddenOf(labels: readonly string[]): string[] {
    const hiding = [...this.sources.values()].filter(({ hides }) => hides);
    return hiding.length === 0 ? [] : labels.filter((label) => hiding.some((each) => !each.labels.has(label)));
  }

  /** The numbers of the steps in a range, without gaps. */
  series(from: number, to: number, stepMs: number): Series {
    const times: number[] = [];
    for (let time = from; time <= to; time += stepMs) times.push(time);
    const buckets = times.map((time) => this.buckets.get(time));
    const labels = new Set(buckets.flatMap((bucket) => [...(bucket?.limits.keys() ?? [])]));
    const checks = (name: keyof Bucket['checks']) => buckets.map((bucket) => bucket?.checks[name] ?? 0);
    const took = (part: number) => buckets.map((bucket) => (bucket ? quantile(bucket.latencies, part) : null));
    return {
      times,
      limits: Object.fromEntries([...labels].map((label) => [label, seriesOf(label, buckets)])),
      store: {
        p50: took(0.5),
        p99: took(0.99),
        checks: checks('checks'),
        fallback: checks('fallback'),
        cache: checks('cache'),
        prefetch: checks('prefetch'),
      },
    };
  }

  /** The sums of all steps since a time. */
  totals(from: number): Record<string, LimitTotals> {
    const all = emptyBucket();
    for (const [step, bucket] of this.buckets) if (step >= from) addBucket(all, bucket);
    return Object.fromEntries(
      [...all.limits].map(([label, { looks: _, admits: _admits, inFlight: _inFlight, ...counts }]) => [label, counts]),
    );
  }
}

const OF_ADAPTIVE: readonly (keyof LimitCounts)[] = ['looks', 'admits', 'inFlight'];

function seriesOf(label: string, buckets: readonly (Bucket | undefined)[]): LimitSeries {
  const rows = buckets.map((bucket) => bucket?.limits.get(label));
  const of = (name: keyof LimitCounts) => rows.map((counts) => counts?.[name] ?? 0);
  // Only adaptive limits have samples.
  const isAdaptive = rows.some((counts) => (counts?.looks ?? 0) > 0);
  const names = LIMIT_COUNTS.filter((name) => isAdaptive || !OF_ADAPTIVE.includes(name));
  return Object.fromEntries(names.map((name) => [name, of(name)])) as unknown as LimitSeries;
}
