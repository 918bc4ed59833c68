import { describe, expect, it } from '@jest/globals';
import { slidingLog, type SlidingLogState } from '../../../lib/engine/algorithms/sliding-log.js';

const parameters = slidingLog.compile({ algo: 'sliding-log', rate: 5, interval: '10s' }, 'test');
const { interval } = parameters;
const SECOND = 1_000_000;
const START = 1_000 * SECOND;

/** Stores units of so many seconds after `START`. */
function logOf(...charges: [second: number, units: number][]): SlidingLogState {
  let state: SlidingLogState | undefined;
  for (const [second, units] of charges) {
    const opened = slidingLog.open(parameters, state, START + second * SECOND);
    slidingLog.take(parameters, opened, units);
    state = slidingLog.save(parameters, opened);
  }
  return state!;
}
const open = (stored: SlidingLogState | undefined, now: number) => slidingLog.open(parameters, stored, now);
const remaining = (state: SlidingLogState) => slidingLog.remaining(parameters, state);
const retryAfter = (state: SlidingLogState, cost: number) => slidingLog.retryAfter(parameters, state, cost);
const resetAfter = (state: SlidingLogState) => slidingLog.resetAfter(parameters, state);

describe('a sliding log', () => {
  it('counts what was charged less than an interval ago', () => {
    const log = logOf([0, 2], [1, 1]);
    const left = [interval - 1, interval, interval + SECOND - 1, interval + SECOND].map((time) =>
      remaining(open(log, START + time)),
    );
    expect(left).toEqual([2, 4, 4, 5]);
  });

  it('fits up to its rate', () => {
    const state = open(logOf([0, 3]), START);
    expect([1, 2, 3].map((cost) => slidingLog.fits(parameters, state, cost))).toEqual([true, true, false]);
  });

  it('has room when enough of the oldest requests have left', () => {
    const state = open(logOf([0, 2], [1, 2], [2, 1]), START + 3 * SECOND);
    expect([1, 2, 3, 4, 5].map((cost) => retryAfter(state, cost) / SECOND)).toEqual([7, 7, 8, 8, 9]);
    expect(resetAfter(state)).toBe(9 * SECOND);
  });

  it('has room an interval after what is charged now', () => {
    const state = open(logOf([0, 2]), START + 4 * SECOND);
    slidingLog.take(parameters, state, 3);
    expect([2, 3].map((cost) => retryAfter(state, cost) / SECOND)).toEqual([6, 10]);
    expect(resetAfter(state)).toBe(interval);
  });

  it('is reset at once if nothing counts', () => {
    expect(resetAfter(open(undefined, START))).toBe(0);
    expect(resetAfter(open(logOf([0, 2]), START + interval))).toBe(0);
  });

  it('keeps requests of one time as one', () => {
    const { log } = logOf([0, 1], [0, 2], [1, 1]);
    expect(log.times).toEqual([START, START + SECOND]);
    expect(log.sums).toEqual([3, 4]);
  });

  it('writes nothing for a look', () => {
    const stored = logOf([0, 1]);
    const state = open(stored, START + SECOND);
    expect(slidingLog.save(parameters, state).log.times).toEqual([START]);
  });

  it('counts what is used later than it was charged in a longer interval', () => {
    expect(slidingLog.prefetch!.parameters(parameters, SECOND)).toEqual({ quota: 5, interval: interval + SECOND });
  });

  it('takes memory with each request', () => {
    const [one, two] = [logOf([0, 1]), logOf([0, 1], [1, 1])].map((state) => slidingLog.bytes!(state));
    expect(two).toBeGreaterThan(one!);
    expect(one).toBeGreaterThan(slidingLog.bytes!(open(undefined, START)));
  });

  it('holds no more requests than it has to, by a factor, however many there were', () => {
    let state: SlidingLogState | undefined;
    let most = 0;
    for (let second = 0; second < 1000; second++) {
      state = open(state, START + second * 3 * SECOND);
      slidingLog.take(parameters, state, 1);
      state = slidingLog.save(parameters, state);
      most = Math.max(most, state.log.times.length);
      expect(remaining(open(state, START + second * 3 * SECOND))).toBe(5 - Math.min(4, second + 1));
    }
    expect(most).toBeLessThan(100);
    expect(resetAfter(open(state, START + 999 * 3 * SECOND))).toBe(interval);
  });
});

describe('units that are given back to a sliding log', () => {
  it('are the oldest ones', () => {
    const state = open(logOf([0, 2], [1, 2], [2, 1]), START + 3 * SECOND);
    slidingLog.give(parameters, state, 3);
    expect(remaining(state)).toBe(3);
    expect([4, 5].map((cost) => retryAfter(state, cost) / SECOND)).toEqual([8, 9]);
    const saved = slidingLog.save(parameters, state);
    expect(remaining(open(saved, START + interval + SECOND))).toBe(4);
    expect(resetAfter(open(saved, START + 4 * SECOND))).toBe(8 * SECOND);
  });

  it('are no more than count', () => {
    const state = open(logOf([0, 2]), START + SECOND);
    slidingLog.give(parameters, state, 9);
    expect([remaining(state), resetAfter(state)]).toEqual([5, 0]);
    expect(remaining(open(slidingLog.save(parameters, state), START + SECOND))).toBe(5);
  });

  it('are none that were charged an interval ago or longer', () => {
    const given = (chargedAt: number) => {
      const state = open(logOf([0, 1], [5, 2]), START + 10 * SECOND);
      slidingLog.give(parameters, state, 1, undefined, chargedAt);
      return remaining(state);
    };
    expect([START - 1, START, START + 1].map(given)).toEqual([3, 3, 4]);
  });

  it('leave nothing behind that hides what is charged at the same time', () => {
    const state = open(logOf([0, 2]), START);
    slidingLog.give(parameters, state, 2);
    const again = open(slidingLog.save(parameters, state), START);
    slidingLog.take(parameters, again, 1);
    expect(remaining(open(slidingLog.save(parameters, again), START + SECOND))).toBe(4);
  });

  it('leave room for what is charged with them', () => {
    const state = open(logOf([0, 2], [1, 3]), START + 2 * SECOND);
    slidingLog.give(parameters, state, 2);
    slidingLog.take(parameters, state, 2);
    expect(retryAfter(state, 4) / SECOND).toBe(10);
    const saved = slidingLog.save(parameters, state);
    expect([10, 11, 12].map((second) => remaining(open(saved, START + second * SECOND)))).toEqual([0, 3, 5]);
  });
});

describe('a sliding log on a clock that was set back', () => {
  it('waits for the clock if it was by less than an interval', () => {
    const state = open(logOf([0, 2]), START - interval + 1);
    expect(state).toMatchObject({ migrated: false, time: START });
    expect(resetAfter(state)).toBe(2 * interval - 1);
    slidingLog.take(parameters, state, 1);
    const { log } = slidingLog.save(parameters, state);
    expect(log).toMatchObject({ times: [START], sums: [3] });
  });

  it('counts all units as charged now if it was by an interval or more', () => {
    const now = START - interval;
    const state = open(logOf([0, 2], [0, 1]), now);
    expect(state.migrated).toBe(true);
    expect([remaining(state), retryAfter(state, 3), resetAfter(state)]).toEqual([2, interval, interval]);
    const saved = slidingLog.save(parameters, state);
    expect([interval - 1, interval].map((time) => remaining(open(saved, now + time)))).toEqual([2, 5]);
    expect(open(saved, now + 1).migrated).toBe(false);
  });

  it('has nothing to keep if nothing counts', () => {
    const state = open(logOf([0, 2]), START + SECOND);
    slidingLog.give(parameters, state, 2);
    const empty = slidingLog.save(parameters, state);
    expect(open(empty, START - interval).migrated).toBe(false);
  });
});
