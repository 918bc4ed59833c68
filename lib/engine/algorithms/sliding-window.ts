import { readOptions } from '../options/check-options.js';
import { whole } from '../options/kinds.js';
import type { Duration } from '../options/values.js';
import type { Algorithm, Parameters, State, WindowCount } from './algorithm.js';
import { holdOptions, type HoldOptions, rateOptions } from './common-options.js';
import { ofInterval } from './share.js';

/**
 * A sliding window of slices: a request of cost c is allowed if the sum of the slices that overlap (t - interval, t] + c <= rate.
 * The oldest slice counts fully until it has left the window, so no period of `interval` has more than `rate` units.
 */
export interface SlidingWindowOptions extends HoldOptions {
  /** The algorithm. */
  algo: 'sliding-window';
  /** The number of units in any period of `interval`: a whole number >= 1. */
  rate: number;
  /** The length of the window: milliseconds or a duration such as `'1m'`, at most 1 year. */
  interval: Duration;
  /**
   * The number of slices of the window, 1 to 1,000. More slices are more exact, and take more memory.
   * @default 10
   */
  slices?: number | undefined;
}

export interface SlidingWindowParameters extends Parameters {
  readonly interval: number;
  readonly slices: number;
  /** The length of a slice: interval / slices, rounded up to whole microseconds. */
  readonly length: number;
}

/** Counts of slices of one length. */
interface Slices {
  readonly length: number;
  /** The absolute number of the newest slice: its start time / length. */
  readonly newest: number;
  /** The counts of the slices of the interval, and of one more; the newest first. */
  readonly counts: number[];
}

export interface SlidingWindowState extends State, Slices {
  length: number;
  newest: number;
  /** The number of the newest slices that are in the future. Units that have arrived until now count there at the latest. */
  ahead: number;
  total: number;
  /** The slices to store if nothing is charged or refunded: those that were stored, extended to the length of the interval. */
  kept: Slices | undefined;
}

const MOST_SLICES = 1000;

const options = {
  ...rateOptions,
  slices: { kind: whole(1, MOST_SLICES), text: 'The number of slices of the window.', default: 10 },
  ...holdOptions,
} as const;

export const slidingWindow: Algorithm<SlidingWindowOptions, SlidingWindowParameters, SlidingWindowState> = {
  name: 'sliding-window',
  code: 'sw',
  options,
  borrowing: true,
  beyond: true,

  compile(given, location) {
    const { rate, interval, slices } = readOptions(location, given, options);
    return windowOf(rate, interval, slices);
  },
  ...ofInterval,
  // The oldest slice counts fully until all of it has left the interval.
  pace: ({ interval, length }) => interval + length,
  scriptParameters: ({ interval, slices, length }) => [interval, slices, length],
  work: ({ slices }) => 1 + Math.ceil(slices / 10),

  open(parameters, stored, now) {
    const { slices, length } = parameters;
    const counts = Array.from({ length: slices + 1 }, () => 0);
    const rest = { length, newest: 0, counts, ahead: 0, total: 0, kept: undefined };
    const state: SlidingWindowState = { now, migrated: false, ...rest };
    reopen(parameters, stored, now, state);
    return state;
  },
  reopen,
  fits: ({ quota }, { total }, cost) => total + cost <= quota,
  take(_, state, cost) {
    settle(state);
    state.counts[0]! += cost;
    state.total += cost;
  },
  give({ interval }, state, units, _ticket, chargedAt) {
    if (chargedAt !== undefined && !counts(state, interval, chargedAt, state.now)) return;
    settle(state);
    // The oldest units are removed first, so that the rest never counts for too short a time.
    for (let age = state.counts.length - 1; age >= 0 && units > 0; age--) {
      const given = Math.min(units, state.counts[age]!);
      state.counts[age]! -= given;
      state.total -= given;
      units -= given;
    }
  },
  save: (_, state) => (state.kept === undefined ? state : { ...state, ...state.kept, kept: undefined }),
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
  // The oldest slice counts until all of it is over.
  sharing: { terms: ({ quota, interval, length }) => ({ units: quota, span: interval + length }) },
  prefetch: {
    // Units used in any period of `interval` were charged in a period of interval + ttl.
    parameters: ({ quota, interval, slices }, ttl) => windowOf(quota, interval + ttl, slices),
    endsWithWindow: false,
  },
  holds: {
    windows: ({ interval, slices }) => `${interval}/${slices}`,
    counts: ({ interval }, state, chargedAt, time) => counts(state, interval, chargedAt, time),
  },
  history(_, state) {
    const settled = { ...state, counts: [...state.counts] };
    settle(settled);
    const { counts, newest, length } = settled;
    return counts.map((count, age): WindowCount => {
      const start = (newest - age) * length;
      return { start: Math.floor(start / 1000), end: Math.floor((start + length) / 1000), count };
    });
  },
};

function reopen(
  parameters: SlidingWindowParameters,
  stored: SlidingWindowState | undefined,
  now: number,
  state: SlidingWindowState,
): void {
  const { interval, slices, length } = parameters;
  const current = Math.floor(now / length);
  // A state has its own counts: `kept` refers to those of another state only until it is saved.
  const { counts } = state;
  if (counts.length !== slices + 1) counts.length = slices + 1;
  counts.fill(0);
  state.now = now;
  state.migrated = false;
  state.length = length;
  state.newest = current;
  state.ahead = 0;
  state.total = 0;
  state.kept = undefined;
  if (stored === undefined) return;
  const isSame = stored.length === length && stored.counts.length === counts.length;
  const longer = isSame ? undefined : lengthened(parameters, stored, now);
  const old = longer ?? stored;
  // No unit arrived later than this: now, or the start of the newest slice while the clock catches up.
  const time = Math.max(now, old.newest * old.length);
  const latest = Math.floor(time / length);
  const newest = Math.max(current, sliceOf(old, 0, isSame, length, latest));
  const oldest = time - interval;
  // The last unit of its slice may have arrived at any time, possibly at the end.
  const setBack = (newest + 1) * length - 1 - now >= interval;
  const ahead = setBack ? 0 : newest - latest;
  for (let i = 0; i < ahead; i++) counts.push(0);
  let total = 0;
  for (let age = 0; age < old.counts.length; age++) {
    const count = old.counts[age]!;
    if (count === 0) continue;
    const number = sliceOf(old, age, isSame, length, latest);
    if ((number + 1) * length - 1 <= oldest) continue;
    counts[setBack ? 0 : newest - number]! += count;
    total += count;
  }
  const isKept = !isSame && total > 0 && !setBack;
  state.migrated = setBack || (isKept && longer !== undefined);
  state.newest = setBack ? current : newest;
  state.ahead = ahead;
  state.total = total;
  if (isKept) state.kept = { length: old.length, newest: old.newest, counts: old.counts };
}

/**
 * The slice of this length for units that arrived in a slice of another length: the slice that contains the last microsecond of that one,
 * possibly in the future.
 */
function sliceOf(
  { length: old, newest }: Slices,
  age: number,
  isSame: boolean,
  length: number,
  latest: number,
): number {
  if (isSame) return newest - age;
  return Math.min(Math.floor(((newest - age + 1) * old - 1) / length), latest + MOST_SLICES);
}

/** Called before anything is charged or refunded. Slices in the future aren't stored, because the state would otherwise have their time. */
function settle(state: SlidingWindowState): void {
  state.kept = undefined;
  if (state.ahead === 0) return;
  const early = state.counts.splice(0, state.ahead);
  state.counts[0] = early.reduce((sum, count) => sum + count, state.counts[0]!);
  state.newest -= state.ahead;
  state.ahead = 0;
}

/**
 * The stored slices, extended by as many as it takes until their units no longer count, if there are too few. The slices have the same
 * length, or a multiple of it if there would be too many. Units that have already left the stored slices are not restored.
 */
function lengthened({ interval, length }: SlidingWindowParameters, old: Slices, now: number): Slices | undefined {
  const span = old.length * (old.counts.length - 1);
  const reach = interval + length;
  if (reach <= span) return undefined;
  const factor = Math.max(1, Math.ceil(reach / (old.length * MOST_SLICES)));
  const newest = Math.floor(old.newest / factor);
  const counts = Array.from({ length: Math.ceil(reach / (old.length * factor)) + 1 }, () => 0);
  const left = Math.max(now, old.newest * old.length) - span;
  for (const [age, count] of old.counts.entries()) {
    const number = old.newest - age;
    if (count > 0 && (number + 1) * old.length - 1 > left) counts[newest - Math.floor(number / factor)]! += count;
  }
  return { length: old.length * factor, newest, counts };
}

/** Returns true if the slice of one time is still in the window at another time. */
function counts({ newest, length }: SlidingWindowState, interval: number, chargedAt: number, at: number): boolean {
  const time = Math.max(at, newest * length);
  return (Math.floor(chargedAt / length) + 1) * length - 1 > time - interval;
}

/** Microseconds until all of the slice of this age has left the window. */
function untilSliceEnds({ newest, length, now }: SlidingWindowState, age: number, interval: number): number {
  return (newest - age + 1) * length - 1 + interval - now;
}

function windowOf(quota: number, interval: number, slices: number): SlidingWindowParameters {
  return { quota, interval, slices, length: Math.ceil(interval / slices) };
}
