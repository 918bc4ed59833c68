import { describe, expect, it } from '@jest/globals';
import type { Series } from '../../../lib/console/api.js';
import { lastKnown, merged, rateNow, summed, totalsOf } from '../../../lib/console/page/data/series.js';

/** A series of a limit, from a time on. */
function seriesOf(from: number, allowed: number[], name = 'api'): Series {
  const zeros = allowed.map(() => 0);
  const limit = { allowed, refused: allowed.map((count) => count * 2), shadowRefused: zeros, near: zeros };
  return {
    times: allowed.map((_, index) => from + index * 1_000),
    limits: { [name]: { ...limit, candidateRefused: zeros, candidateAsked: zeros } },
    store: {
      p50: allowed,
      p99: allowed.map(() => null),
      checks: allowed,
      fallback: zeros,
      cache: zeros,
      prefetch: zeros,
    },
  };
}

describe('numbers over time', () => {
  it('replace those of the same time, which were not complete', () => {
    const series = merged(seriesOf(0, [1, 2, 3]), seriesOf(1_000, [5, 6, 7]), 1_000, 10);
    expect(series.times).toEqual([0, 1_000, 2_000, 3_000]);
    expect(series.limits['api']!.allowed).toEqual([1, 5, 6, 7]);
    expect(series.store.p50).toEqual([1, 5, 6, 7]);
  });

  it('keep the newest', () => {
    const series = merged(seriesOf(0, [1, 2, 3]), seriesOf(3_000, [4]), 1_000, 2);
    expect([series.times, series.limits['api']!.allowed, series.store.p99]).toEqual([
      [2_000, 3_000],
      [3, 4],
      [null, null],
    ]);
  });

  it('are zero where nothing was told', () => {
    const series = merged(seriesOf(0, [1]), seriesOf(3_000, [4]), 1_000, 10);
    expect(series.times).toEqual([0, 1_000, 2_000, 3_000]);
    expect(series.limits['api']!.allowed).toEqual([1, 0, 0, 4]);
    expect(series.store.p50).toEqual([1, null, null, 4]);
  });

  it('know limits that only one of them names', () => {
    const series = merged(seriesOf(0, [1], 'old'), seriesOf(1_000, [4], 'new'), 1_000, 10);
    expect(series.limits['old']!.allowed).toEqual([1, 0]);
    expect(series.limits['new']!.allowed).toEqual([0, 4]);
  });

  it('stay as they are when nothing is told', () => {
    const series = seriesOf(0, [1]);
    expect(merged(series, seriesOf(0, []), 1_000, 10)).toBe(series);
  });

  it('are summed, of all limits and of one', () => {
    const series = merged(seriesOf(0, [1, 2], 'one'), seriesOf(0, [10, 20], 'other'), 1_000, 10);
    expect(summed(series, 'allowed', 'other')).toEqual([10, 20]);
    expect(summed(series, 'allowed', 'none')).toEqual([0, 0]);
    expect(totalsOf(series.limits['other']!)).toMatchObject({ allowed: 30, refused: 60, near: 0 });
  });

  it('have a rate of the last five seconds, and a last value', () => {
    expect([rateNow([1, 2, 4, 4, 4, 6], 1_000), rateNow([1, 30], 15_000), rateNow([], 1_000)]).toEqual([4, 2, 0]);
    expect([lastKnown([1, null, 3, null]), lastKnown([null])]).toEqual([3, null]);
  });
});
