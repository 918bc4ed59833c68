import type { Parameters, State } from './algorithm.js';
import type { CalendarWindows } from './calendar.js';

/** The core of fixed and calendar windows, which counts units between two times. A cost c fits if count + c <= quota. */
export interface WindowState extends State {
  count: number;
  start: number;
  end: number;
  /** The time of the last charge. */
  last: number;
}

export const windowCount = {
  fits: ({ quota }: Parameters, { count }: WindowState, cost: number): boolean => count + cost <= quota,
  take(_: Parameters, state: WindowState, cost: number): void {
    state.count += cost;
    state.last = Math.max(state.last, state.now);
  },
  give(_: Parameters, state: WindowState, units: number, _ticket?: number, chargedAt: number = state.start): void {
    // Units that were charged in another window do not count in this one.
    if (chargedAt >= state.start) state.count = Math.max(0, state.count - units);
  },
  remaining: ({ quota }: Parameters, { count }: WindowState): number => quota - count,
  retryAfter: (_: Parameters, { end, now }: WindowState): number => end - now,
  resetAfter: (_: Parameters, { count, end, now }: WindowState): number => (count > 0 ? end - now : 0),
};

/** Units of a window count until it ends, but not in the next one. */
export const holdsOfWindow = {
  counts: (_: Parameters, { start, end }: WindowState, chargedAt: number, time: number): boolean =>
    chargedAt >= start && time < end,
};

/** Units that are used in the window in which they were charged count in it, so nothing changes. */
export const prefetchOfWindow = {
  parameters: <P extends Parameters>(parameters: P): P => parameters,
  endsWithWindow: true,
};

/** The parameters that determine the windows. */
export interface CalendarWindowParameters extends Parameters {
  readonly calendar: CalendarWindows;
  readonly retain: number;
  /** True if the start of windows is unknown. The current window is kept then, and a new one follows the calendar. */
  readonly follows: boolean;
}

/** A finished window. */
export interface FinishedWindow {
  readonly count: number;
  readonly start: number;
  readonly end: number;
}

/** The current window, and the finished ones that are kept. */
export interface CalendarWindowState extends WindowState {
  /** Windows that ended before this one, the oldest first. */
  finished: readonly FinishedWindow[];
}
