import { describe, expect, it } from '@jest/globals';
import { slidingWindow, type SlidingWindowState } from '../../../lib/engine/algorithms/sliding-window.js';

const compiled = (interval: string, slices = 10) =>
  slidingWindow.compile({ algo: 'sliding-window', rate: 5, interval, slices }, 'test');

const parameters = compiled('10s');
const { interval, length } = parameters;
/** The beginning of a slice. */
const START = 1000 * length;

/** Stores units of so many slices after `START`. */
function windowOf(...charges: [slice: number, units: number][]): SlidingWindowState {
  let state: SlidingWindowState | undefined;
  for (const [slice, units] of charges) {
    const opened = open(state, START + slice * length);
    slidingWindow.take(parameters, opened, units);
    state = slidingWindow.save(parameters, opened);
  }
  return state!;
}
function open(stored: SlidingWindowState | undefined, now: number, by = parameters): SlidingWindowState {
  return slidingWindow.open(by, stored, now);
}
const remaining = (state: SlidingWindowState) => slidingWindow.remaining(parameters, state);
const retryAfter = (state: SlidingWindowState, cost: number) => slidingWindow.retryAfter(parameters, state, cost);
const resetAfter = (state: SlidingWindowState) => slidingWindow.resetAfter(parameters, state);
/** When a slice counts no longer, on the clock. */
const endOf = (slice: number) => START + (slice + 1) * length - 1 + interval;

describe('a sliding window', () => {
  it('counts a slice until none of it is in the interval', () => {
    const state = windowOf([0, 2], [3, 1]);
    const times = [endOf(0) - 1, endOf(0), endOf(3) - 1, endOf(3)];
    expect(times.map((now) => remaining(open(state, now)))).toEqual([2, 4, 4, 5]);
  });

  it('has room when enough of the oldest slices have left', () => {
    const now = START + 5 * length;
    const state = open(windowOf([0, 2], [1, 2], [4, 1]), now);
    const ends = [1, 2, 3, 4, 5].map((cost) => retryAfter(state, cost) + now);
    expect(ends).toEqual([endOf(0), endOf(0), endOf(1), endOf(1), endOf(4)]);
    expect(resetAfter(state) + now).toBe(endOf(4));
  });

  it('is reset at once if nothing counts', () => {
    expect(resetAfter(open(undefined, START))).toBe(0);
    expect(resetAfter(open(windowOf([0, 1]), endOf(0)))).toBe(0);
  });

  it('has so many slices, and one more', () => {
    expect(open(undefined, START).counts).toHaveLength(11);
    expect(open(undefined, START, compiled('10s', 1)).counts).toHaveLength(2);
    expect(slidingWindow.bytes!(open(undefined, START))).toBe(88);
    expect([1, 10, 11, 1000].map((slices) => slidingWindow.work!(compiled('10s', slices)))).toEqual([2, 2, 3, 101]);
  });

  it('counts what is used later than it was charged in a longer interval', () => {
    expect(slidingWindow.prefetch!.parameters(parameters, 2_000_000)).toEqual({
      quota: 5,
      interval: 12_000_000,
      slices: 10,
      length: 1_200_000,
    });
  });

  it('tells what was allowed in each slice, the newest first', () => {
    const state = open(windowOf([0, 2], [2, 1]), START + 3 * length);
    const history = slidingWindow.history!(parameters, state);
    expect(history).toHaveLength(11);
    expect(history.slice(0, 5).map(({ count }) => count)).toEqual([0, 1, 0, 2, 0]);
    expect(history[1]).toEqual({ start: (START + 2 * length) / 1000, end: (START + 3 * length) / 1000, count: 1 });
  });
});

describe('units that are given back to a sliding window', () => {
  it('are the oldest ones, and no more than count', () => {
    const now = START + 5 * length;
    const state = open(windowOf([0, 2], [1, 2], [4, 1]), now);
    slidingWindow.give(parameters, state, 3);
    expect([remaining(state), retryAfter(state, 4) + now, retryAfter(state, 5) + now]).toEqual([3, endOf(1), endOf(4)]);
    slidingWindow.give(parameters, state, 9);
    expect([remaining(state), resetAfter(state)]).toEqual([5, 0]);
  });

  it('are none of a slice that counts no longer', () => {
    const left = [endOf(0) - 1, endOf(0)].map((now) => {
      const state = open(windowOf([0, 1], [5, 2]), now);
      slidingWindow.give(parameters, state, 1, undefined, START + 1);
      return remaining(state);
    });
    expect(left).toEqual([3, 3]);
  });
});

describe('a sliding window on a clock that was set back', () => {
  it('takes back what was charged in a slice that counts on its own time', () => {
    const now = START - length;
    const state = open(windowOf([0, 2]), now);
    slidingWindow.give(parameters, state, 1, undefined, START + 1);
    expect(state.total).toBe(1);
    slidingWindow.give(parameters, state, 1, undefined, START - interval - length);
    expect(state.total).toBe(1);
  });

  it('waits for the clock if it was by less than an interval', () => {
    const stored = windowOf([0, 2]);
    const now = START + length - 1 - interval + 1;
    const state = open(stored, now);
    expect(state).toMatchObject({ migrated: false, newest: 1000, total: 2 });
    expect(resetAfter(state) + now).toBe(endOf(0));
    slidingWindow.take(parameters, state, 1);
    expect(resetAfter(state) + now).toBe(endOf(0));
  });

  it('counts all units in the slice of now if it was by an interval or more', () => {
    const now = START + length - 1 - interval;
    const state = open(windowOf([-1, 1], [0, 2]), now);
    expect(state).toMatchObject({ migrated: true, total: 3, newest: Math.floor(now / length), ahead: 0 });
    expect(state.counts[0]).toBe(3);
    expect(resetAfter(state)).toBeLessThanOrEqual(interval + length);
    expect(open(slidingWindow.save(parameters, state), now).migrated).toBe(false);
  });
});

describe('a sliding window of other slices', () => {
  it('counts units at the end of the slice that they came in', () => {
    const coarse = compiled('8s', 4);
    const state = open(windowOf([0, 2], [1, 1], [2, 2]), START + 3 * length, coarse);
    expect(state).toMatchObject({ total: 5, migrated: false });
    expect(state.counts.slice(0, 3)).toEqual([2, 3, 0]);
  });

  it('keeps what was stored until it is charged', () => {
    const coarse = compiled('8s', 4);
    const stored = windowOf([0, 2], [1, 1]);
    const looked = slidingWindow.save(coarse, open(stored, START + 3 * length, coarse));
    expect(looked).toMatchObject({ length, newest: stored.newest, counts: stored.counts, kept: undefined });
    expect(remaining(open(looked, START + 3 * length))).toBe(2);
    const charged = open(looked, START + 3 * length, coarse);
    slidingWindow.take(coarse, charged, 1);
    expect(slidingWindow.save(coarse, charged)).toMatchObject({ length: 2 * length, total: 4 });
  });

  it('counts units of a longer interval for as long as that says', () => {
    const longer = compiled('20s', 20);
    const stored = windowOf([0, 3]);
    const state = open(stored, START + 5 * length, longer);
    expect(state).toMatchObject({ total: 3, migrated: true });
    const saved = slidingWindow.save(longer, state);
    expect(saved.counts.length).toBeGreaterThan(stored.counts.length);
    const end = START + length - 1 + 20_000_000;
    expect([end - 1, end].map((now) => open(saved, now, longer).total)).toEqual([3, 0]);
  });

  it('counts what is charged now in the slice of now, though others end later', () => {
    const whole = compiled('10s', 1);
    const stored = slidingWindow.open(whole, undefined, START);
    slidingWindow.take(whole, stored, 2);
    // The only slice of the other window ends nine slices from here.
    const now = START + length;
    const state = open(slidingWindow.save(whole, stored), now);
    expect([state.total, state.ahead]).toEqual([2, 8]);
    slidingWindow.take(parameters, state, 1);
    expect(state).toMatchObject({ newest: 1001, ahead: 0, total: 3 });
    expect(state.counts[0]).toBe(3);
    expect(open(slidingWindow.save(parameters, state), now + interval + length - 2).total).toBe(3);
    expect(open(slidingWindow.save(parameters, state), now + interval + length - 1).total).toBe(0);
  });

  it('does not bring back what had left', () => {
    const state = open(windowOf([0, 3], [5, 1]), endOf(0), compiled('20s', 20));
    expect(state.total).toBe(1);
  });
});
