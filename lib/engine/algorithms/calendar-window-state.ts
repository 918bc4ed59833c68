import type { Parameters } from './algorithm.js';
import type { CalendarWindows } from './calendar.js';
import type { WindowState } from './window-count.js';

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
