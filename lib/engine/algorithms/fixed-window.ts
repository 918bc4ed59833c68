import { readOptions } from '../options/check-options.js';
import type { Duration } from '../options/values.js';
import type { Algorithm, Parameters } from './algorithm.js';
import { holdOptions, type HoldOptions, rateOptions } from './common-options.js';
import { ofInterval } from './share.js';
import { holdsOfWindow, prefetchOfWindow, windowCount, type WindowState } from './window-state.js';

/**
 * A fixed window: it opens with its first request and lasts `interval`; a request of cost c is allowed if count + c <= rate. Two
 * windows may be adjacent, so up to 2 x rate units can pass around the end of one.
 */
export interface FixedWindowOptions extends HoldOptions {
  /** The algorithm. */
  algo: 'fixed-window';
  /** The number of units per window: a whole number >= 1. */
  rate: number;
  /** The length of a window: milliseconds or a duration such as `'10s'`, at most 1 year. */
  interval: Duration;
}

export interface FixedWindowParameters extends Parameters {
  readonly interval: number;
}

export interface FixedWindowState extends WindowState {
  /** For a stored state: true if it is the current window although no units are left in it. */
  readonly isKept?: true;
}

/** The time of the last charge of a window that was never charged. */
const NEVER = 0;

const options = { ...rateOptions, ...holdOptions } as const;

export const fixedWindow: Algorithm<FixedWindowOptions, FixedWindowParameters, FixedWindowState> = {
  name: 'fixed-window',
  code: 'fw',
  options,
  borrowing: true,
  beyond: true,

  compile(given, location) {
    const { rate, interval } = readOptions(location, given, options);
    return { quota: rate, interval };
  },
  ...ofInterval,
  scriptParameters: ({ interval }) => [interval],

  open(parameters, stored, now) {
    const state: FixedWindowState = { now, migrated: false, count: 0, start: now, end: now, last: NEVER };
    reopen(parameters, stored, now, state);
    return state;
  },
  reopen,
  ...windowCount,
  save: (_, state) => state,
  prefetch: prefetchOfWindow,
  holds: {
    ...holdsOfWindow,
    windows: ({ interval }) => String(interval),
    known: ({ interval }) => interval,
    // Even if all units of a window were refunded, it determines the window of units that are settled later.
    ended: (_, stored, _now, held) => (stored.count > 0 || held.isEmpty ? stored : { ...stored, isKept: true }),
    // A window that was never charged does not count as one.
    keepFor: (_, { count, start, end, last, now }, held) =>
      count === 0 && last >= start && !held.isEmpty ? end - now : 0,
  },
};

function reopen(
  { interval }: FixedWindowParameters,
  stored: FixedWindowState | undefined,
  now: number,
  state: FixedWindowState,
): void {
  state.now = now;
  state.migrated = false;
  state.count = 0;
  state.start = now;
  state.end = now + interval;
  state.last = NEVER;
  if (stored === undefined || (stored.count === 0 && stored.isKept !== true)) return;
  const end = Math.min(stored.end, stored.start + interval);
  state.migrated = stored.last - now >= interval;
  if (!state.migrated && now >= end) return;
  state.count = stored.count;
  state.last = now;
  if (state.migrated) return;
  state.start = stored.start;
  state.end = end;
  state.last = stored.last;
}
