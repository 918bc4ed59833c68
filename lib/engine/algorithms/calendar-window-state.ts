import type { Parameters } from './algorithm.js';
import type { CalendarWindows } from './calendar.js';
import type { WindowState } from './window-count.js';

/** Which windows are counted. */
export interface CalendarWindowParameters extends Parameters {
  readonly calendar: CalendarWindows;
  readonly retain: number;
  /** Whether it is unknown where windows begin: then the current one is kept, and a new one follows the calendar. */
  readonly follows: boolean;
}

/** A finished window. */
export interface FinishedWindow {
  readonly count: number;
  readonly start: number;
  readonly end: number;
}

/** The current window, and those that are kept. */
export interface CalendarWindowState extends WindowState {
  /** Windows that ended before this one, the oldest first. */
  finished: readonly FinishedWindow[];
}
