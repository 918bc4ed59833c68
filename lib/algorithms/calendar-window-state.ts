import type { Parameters } from './algorithm.js';
import type { CalendarWindows } from './calendar.js';
import type { WindowState } from './window-count.js';

/** What was read of which windows are counted. */
export interface CalendarWindowParameters extends Parameters {
  readonly calendar: CalendarWindows;
  readonly retain: number;
  /** Nothing says where windows begin: the one that runs is kept to, and only where none does, the calendar's own begins. */
  readonly follows: boolean;
}

/** A finished window. */
export interface FinishedWindow {
  readonly count: number;
  readonly start: number;
  readonly end: number;
}

/** The window that runs, and those that are kept. */
export interface CalendarWindowState extends WindowState {
  /** Windows that ended before this one, the oldest first. */
  finished: readonly FinishedWindow[];
}
