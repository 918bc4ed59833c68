import type { Algorithm } from './algorithm.js';
import { type CalendarOptions, calendarOf, calendarWindow, followingOf } from './calendar-window.js';
import type { CalendarWindowParameters, CalendarWindowState } from './calendar-window-state.js';
import { type HoldOptions, holdTerms } from './hold-terms.js';
import { type Duration, orElse, wholeNumber } from './options.js';
import type { PlanOptions } from './plan-terms.js';
import { planned } from './plan-window.js';
import { shareOfUnits } from './share.js';

/** How long units are held by default. */
const HOLD = '5m';

/**
 * A budget for a period: a reservation of cost c is allowed if spent + held + c <= limit; both restart with every period of a
 * time zone. The real cost is settled later, in the period of the reservation.
 */
export type BudgetOptions = {
  /** The algorithm. */
  algo: 'budget';
  /** Units that may be spent per period: a whole number >= 1. `usd(50)` is fifty dollars in millionths of a dollar. */
  limit: number;
  /**
   * How long `reserve` holds units that are not settled, for example because their process died: milliseconds or a duration, at
   * most 1 year.
   * @default '5m'
   */
  hold?: Duration;
} & CalendarOptions &
  HoldOptions &
  PlanOptions;

// Units prefetched for future requests would not be what they cost; and money is not lent.
const { prefetch: _, borrowing: _borrowing, following: _following, variants: _variants, ...counted } = calendarWindow;

const own: Algorithm<BudgetOptions, CalendarWindowParameters, CalendarWindowState> = {
  ...counted,
  name: 'budget',
  code: 'bu',
  options: ['limit', 'period', 'timezone', 'anchor', 'rollover', 'credits', 'retain', 'hold', 'onLapse'],

  compile(options, location) {
    const quota = wholeNumber(location, 'limit', options.limit);
    const windows = calendarOf(options, location);
    const hold = holdTerms({ ...options, hold: orElse(options.hold, HOLD) }, location, windows.calendar.name);
    return { quota, ...windows, hold };
  },
  defaultName: ({ algo, limit, period }) => `${algo}:${limit}/${period}`,
  share: (options, part) => ({ ...options, limit: shareOfUnits(options.limit, part) }),
};

const plan = planned<BudgetOptions>(own, 'bp');

export const budget = { ...own, following: followingOf(own), variants: { rollover: plan, credits: plan } };
