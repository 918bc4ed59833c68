import type { Algorithm, Parameters, State, WindowCount } from './algorithm.js';
import { duration, type Duration, orElse, showDuration, wholeNumber } from './options.js';

/**
 * A sliding window of slices: a request of cost c is allowed if the sum of the slices that overlap (t - interval, t] + c <=
 * rate. The oldest slice counts whole until none of it is in the window, so no stretch of `interval` holds more than `rate`.
 */
export interface SlidingWindowOptions {
  /** The algorithm. */
  algo: 'sliding-window';
  /** Units that are allowed in any stretch of `interval`: a whole number >= 1. */
  rate: number;
  /** The length of the window: milliseconds or a duration such as `'1m'`, at most 1 year. */
  interval: Duration;
  /**
   * Into how many slices the window is cut, 1 to 1,000: more are more exact and take more memory.
   * @default 10
   */
  slices?: number;
}

export interface SlidingWindowParameters extends Parameters {
  readonly interval: number;
  readonly slices: number;
  /** The length of a slice: interval / slices, rounded up to whole microseconds. */
  readonly length: number;
}

export interface SlidingWindowState extends State {
  readonly length: number;
  /** The absolute number of the newest slice: the time at which it starts / length. */
  readonly newest: number;
  /** slices + 1 counts, the newest slice's first. */
  readonly counts: number[];
  total: number;
}

export const slidingWindow: Algorithm<SlidingWindowOptions, SlidingWindowParameters, SlidingWindowState> = {
  name: 'sliding-window',
  code: 'sw',
  options: ['rate', 'interval', 'slices'],

  compile(options, place) {
    const quota = wholeNumber(place, 'rate', options.rate);
    const interval = duration(place, 'interval', options.interval);
    const slices = wholeNumber(place, 'slices', orElse(options.slices, 10), { max: 1000 });
    return windowOf(quota, interval, slices);
  },
  defaultName: ({ algo, rate, interval }) => `${algo}:${rate}/${showDuration(interval)}`,
  window: ({ interval }) => interval,
  scriptParameters: ({ interval, slices, length }) => [interval, slices, length],

  open({ interval, slices, length }, stored, now) {
    const current = Math.floor(now / length);
    const counts = Array.from({ length: slices + 1 }, () => 0);
    if (stored === undefined) return { now, moved: false, length, newest: current, counts, total: 0 };
    const moved = stored.length !== length || stored.counts.length !== counts.length;
    // A slice of another length counts at its last microsecond.
    const slice = (age: number) =>
      moved ? Math.floor(((stored.newest - age + 1) * stored.length - 1) / length) : stored.newest - age;
    const newest = Math.max(current, slice(0));
    const time = Math.max(now, newest * length);
    const setBack = time - now >= interval;
    let total = 0;
    for (const [age, count] of stored.counts.entries()) {
      const number = slice(age);
      if (count === 0 || (number + 1) * length - 1 <= time - interval) continue;
      counts[setBack ? 0 : newest - number]! += count;
      total += count;
    }
    return { now, moved: setBack, length, newest: setBack ? current : newest, counts, total };
  },
  fits: ({ quota }, { total }, cost) => total + cost <= quota,
  take(_, state, cost) {
    state.counts[0]! += cost;
    state.total += cost;
  },
  give({ interval }, state, units, _place, at) {
    const { now, newest, length } = state;
    const time = Math.max(now, newest * length);
    if (at !== undefined && (Math.floor(at / length) + 1) * length - 1 <= time - interval) return;
    // The oldest units go first: what is left then counts no shorter than it should.
    for (let age = state.counts.length - 1; age >= 0 && units > 0; age--) {
      const given = Math.min(units, state.counts[age]!);
      state.counts[age]! -= given;
      state.total -= given;
      units -= given;
    }
  },
  save: (_, state) => state,
  bytes: ({ counts }) => 8 * counts.length,

  remaining: ({ quota }, { total }) => quota - total,
  retryAfter({ quota, interval }, state, cost) {
    let excess = state.total + cost - quota;
    let age = state.counts.length;
    while (excess > 0) excess -= state.counts[--age]!;
    return untilSliceEnds(state, age, interval);
  },
  resetAfter: ({ interval }, state) =>
    state.total === 0
      ? 0
      : untilSliceEnds(
          state,
          state.counts.findIndex((count) => count > 0),
          interval,
        ),
  lease: {
    // What is used in any stretch of `interval` was charged in one of interval + ttl.
    parameters: ({ quota, interval, slices }, ttl) => windowOf(quota, interval + ttl, slices),
    endsWithWindow: false,
  },
  history: (_, { counts, newest, length }) =>
    counts.map((count, age): WindowCount => {
      const start = (newest - age) * length;
      return { start: Math.floor(start / 1000), end: Math.floor((start + length) / 1000), count };
    }),
};

/** Microseconds until none of the slice of that age is in the window. */
function untilSliceEnds({ newest, length, now }: SlidingWindowState, age: number, interval: number): number {
  return (newest - age + 1) * length - 1 + interval - now;
}

function windowOf(quota: number, interval: number, slices: number): SlidingWindowParameters {
  return { quota, interval, slices, length: Math.ceil(interval / slices) };
}
