import type { Algorithm } from './algorithm.js';
import { readOptions } from '../options/check-options.js';
import { whole } from '../options/kinds.js';
import type { Duration } from '../options/values.js';
import { type CalendarOptions, calendarOf, calendarOptions, calendarWindow, followingOf } from './calendar-window.js';
import { type CalendarWindowParameters, type CalendarWindowState, prefetchOfWindow } from './window-state.js';
import type { HoldOptions } from './common-options.js';
import type { PlanOptions } from './plan/options.js';
import { shareOfUnits } from './share.js';

/**
 * A budget for a period: a reservation of cost c is allowed if spent + held + c <= limit; both restart with every period of a time zone.
 * The actual cost is settled later, in the period of the reservation.
 */
export type BudgetOptions = {
  /** The algorithm. */
  algo: 'budget';
  /** The units that may be spent per period: a whole number >= 1. `usd(50)` is fifty dollars in millionths of a dollar. */
  limit: number;
  /**
   * The time for which `reserve` holds units that are not settled, for example because their process died: milliseconds or a duration, at
   * most 1 year.
   * @default '5m'
   */
  hold?: Duration | undefined;
} & CalendarOptions &
  HoldOptions &
  PlanOptions;

// The cost of units prefetched for future requests isn't known, money is not lent, and only spent units are counted.
const { prefetch: _, borrowing: _borrowing, beyond: _beyond, following: _following, ...counted } = calendarWindow;

const options = {
  limit: { kind: whole(), text: 'The number of units that may be spent per period.', required: true },
  ...calendarOptions,
  hold: { ...calendarOptions.hold, default: '5m' },
} as const;

const own: Algorithm<BudgetOptions, CalendarWindowParameters, CalendarWindowState> = {
  ...counted,
  name: 'budget',
  code: 'bu',
  granting: prefetchOfWindow,
  planning: { code: 'bp' },
  options,

  compile(given, location) {
    const read = readOptions(location, given, options);
    return { quota: read.limit, ...calendarOf(read, given, location) };
  },
  defaultName: ({ algo, limit, period }) => `${algo}:${limit}/${period}`,
  share: (options, part) => ({ ...options, limit: shareOfUnits(options.limit, part) }),
};

export const budget = { ...own, following: followingOf(own) };
