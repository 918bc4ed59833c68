import type { InstanceInfo, LimitSeries, LimitTotals, Series, StoreSeries } from '../../api.js';

/** Returns true if the other instances could not be read, so that only the responding one is displayed. */
export function isAlone({
  problem,
  instances,
}: {
  problem?: string | undefined;
  instances: readonly InstanceInfo[];
}): boolean {
  return problem !== undefined && instances.every(({ self }) => self);
}

/** The entry of a limit. Its name may be that of a property that all objects have. */
export function ofLimit<T>(byLimit: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(byLimit, name) ? byLimit[name] : undefined;
}

const LIMIT_FIELDS = ['allowed', 'refused', 'shadowRefused', 'near', 'candidateRefused', 'candidateAsked'] as const;
const ADAPTIVE_FIELDS = ['looks', 'admits', 'inFlight'] as const;
const STORE_COUNTS = ['checks', 'fallback', 'cache', 'prefetch'] as const;
const STORE_TIMES = ['p50', 'p99'] as const;

/** Merges newer steps into a series. They replace steps of the same time. Keeps at most `length` steps. */
export function merged(series: Series, newer: Series, stepMs: number, length: number): Series {
  const first = newer.times[0];
  if (first === undefined) return series;
  const kept = series.times.filter((time) => time < first).length;
  const gap = gapBefore(series.times[kept - 1], first, stepMs);
  const times = [...series.times.slice(0, kept), ...gap, ...newer.times];
  const put = <T>(old: readonly T[] | undefined, fresh: readonly T[] | undefined, none: T): T[] =>
    [
      ...(old?.slice(0, kept) ?? filled(kept, none)),
      ...filled(gap.length, none),
      ...(fresh ?? filled(newer.times.length, none)),
    ].slice(-length);
  const names = new Set([...Object.keys(series.limits), ...Object.keys(newer.limits)]);
  return {
    times: times.slice(-length),
    limits: Object.fromEntries(
      [...names].map((name) => {
        const [old, fresh] = [ofLimit(series.limits, name), ofLimit(newer.limits, name)];
        const more = ADAPTIVE_FIELDS.filter((field) => (old?.[field] ?? fresh?.[field]) !== undefined);
        const fields = [...LIMIT_FIELDS, ...more].map((field) => [field, put(old?.[field], fresh?.[field], 0)]);
        return [name, Object.fromEntries(fields) as LimitSeries];
      }),
    ),
    store: Object.fromEntries([
      ...STORE_COUNTS.map((field) => [field, put(series.store[field], newer.store[field], 0)]),
      ...STORE_TIMES.map((field) => [field, put<number | null>(series.store[field], newer.store[field], null)]),
    ]) as StoreSeries,
  };
}

/** The times between two steps. */
function gapBefore(last: number | undefined, first: number, stepMs: number): number[] {
  if (last === undefined) return [];
  return Array.from(
    { length: Math.min(10_000, Math.max(0, Math.round((first - last) / stepMs) - 1)) },
    (_, index) => last + (index + 1) * stepMs,
  );
}

function filled<T>(length: number, value: T): T[] {
  return Array.from({ length }, () => value);
}

export function totalsOf(series: LimitSeries): LimitTotals {
  return Object.fromEntries(LIMIT_FIELDS.map((field) => [field, sum(series[field])])) as unknown as LimitTotals;
}

/** The sums of a field over all limits. */
export function summed(series: Series, field: keyof LimitSeries, name?: string): number[] {
  const lists = (name === undefined ? Object.values(series.limits) : [ofLimit(series.limits, name)]).map(
    (limit) => limit?.[field],
  );
  return series.times.map((_, index) => lists.reduce((total, list) => total + (list?.[index] ?? 0), 0));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The period that counts as "now", in milliseconds, since single seconds vary. */
const NOW_MS = 5_000;

/** The mean of the last steps, per second. */
export function rateNow(values: readonly number[], stepMs: number): number {
  const last = values.slice(-Math.max(1, Math.round(NOW_MS / stepMs)));
  return last.length === 0 ? 0 : (sum(last) * 1_000) / (last.length * stepMs);
}

export function lastKnown(values: readonly (number | null)[]): number | null {
  return values.findLast((value) => value !== null) ?? null;
}
