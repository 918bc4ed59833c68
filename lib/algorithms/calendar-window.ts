import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { planMessages } from '../errors/messages/plan.js';
import type { Algorithm, WindowCount } from './algorithm.js';
import { type AnchorOption, asksForAnchor, fixedAnchor } from './anchor.js';
import { ANCHORED_PERIODS, AnchoredCalendar, type AnchoredPeriod } from './anchored-calendar.js';
import { Calendar, type CalendarWindow, isTimezone, type Period, PERIODS } from './calendar.js';
import { type HoldOptions, holdTerms } from './hold-terms.js';
import { duration, type Duration, oneOf, orElse, wholeNumber } from './options.js';
import type { CalendarWindowParameters, CalendarWindowState, FinishedWindow } from './calendar-window-state.js';
import type { PlanOptions } from './plan-terms.js';
import { planned } from './plan-window.js';
import { shareOfUnits } from './share.js';
import { holdsOfWindow, prefetchOfWindow, windowCount, type WindowState } from './window-count.js';

/**
 * A window of the calendar: a request of cost c is allowed if count + c <= rate, where count starts anew with every second,
 * minute, hour, day, week (from Monday), month, quarter or year of a time zone, through its changes to and from summer time.
 */
export type CalendarWindowOptions = {
  /** The algorithm. */
  algo: 'calendar-window';
  /** Units that are allowed a window: a whole number >= 1. */
  rate: number;
} & CalendarOptions &
  HoldOptions &
  PlanOptions;

/** Which windows of the calendar are counted. */
export type CalendarOptions = {
  /**
   * An IANA time zone, such as `'Europe/Berlin'`.
   * @default 'UTC'
   */
  timezone?: string;
  /**
   * How long the count of a finished window can still be read, after its end: milliseconds or a duration such as `'7d'`, at
   * most 1 year, and at most 10,000 windows.
   * @default not at all
   */
  retain?: Duration;
} & (
  | {
      /** The calendar's window. */
      period: Period;
      /** Not of windows below a day. */
      anchor?: undefined;
    }
  | {
      /** How long a window lasts. */
      period: AnchoredPeriod;
      /**
       * Where windows begin, such as a subscription's own month: a `Date`, an ISO 8601 date such as `'2026-01-31'` (of the
       * `timezone`, unless it names an offset) or milliseconds since the epoch; or a function of the context that gives one of
       * these, or nothing for the calendar's own window. The nth window begins at its local time, n periods after it: of the 31st on
       * 28 February, and then again on 31 March. Not with periods below a day; a function not with `prefetch`.
       * @default where the calendar's own windows begin
       */
      anchor: AnchorOption;
    }
);

const NONE_FINISHED: readonly FinishedWindow[] = [];

/** The windows that are kept at most. */
const MAX_RETAINED = 10_000;

/** The shortest window of each period, in microseconds. */
const SHORTEST: Record<Period, number> = {
  second: 1e6,
  minute: 60e6,
  hour: 3600e6,
  day: 23 * 3600e6,
  week: 167 * 3600e6,
  month: 28 * 86_400e6 - 3600e6,
  quarter: 90 * 86_400e6 - 3600e6,
  year: 365 * 86_400e6,
};

const counted: Algorithm<CalendarWindowOptions, CalendarWindowParameters, CalendarWindowState> = {
  name: 'calendar-window',
  code: 'cw',
  extraKeys: ['history'],
  options: ['rate', 'period', 'timezone', 'anchor', 'rollover', 'credits', 'retain', 'hold', 'onLapse'],
  borrowing: true,

  compile(options, location) {
    const quota = wholeNumber(location, 'rate', options.rate);
    const windows = calendarOf(options, location);
    return { quota, ...windows, hold: holdTerms(options, location, windows.calendar.name) };
  },
  defaultName: ({ algo, rate, period }) => `${algo}:${rate}/${period}`,
  share: (options, part) => ({ ...options, rate: shareOfUnits(options.rate, part) }),
  window(parameters, now) {
    const { start, end } = parameters.calendar.windowAt(now);
    return end - start;
  },
  scriptParameters({ calendar, retain }, now) {
    const { start, end } = calendar.windowAt(now);
    return [start, end, retain];
  },

  open(parameters, stored, now) {
    const window = { count: 0, start: now, end: now, last: now };
    const state: CalendarWindowState = { now, migrated: false, ...window, finished: NONE_FINISHED };
    reopen(parameters, stored, now, state);
    return state;
  },
  reopen,
  ...windowCount,
  save: (_, state) => state,
  bytes: ({ finished }) => 100 + 100 * finished.length,
  prefetch: prefetchOfWindow,
  holds: {
    ...holdsOfWindow,
    correct(_, state, chargedAt, difference) {
      state.finished = state.finished.map((window) =>
        chargedAt < window.start || chargedAt >= window.end
          ? window
          : { ...window, count: Math.max(0, Math.min(window.count + difference, Number.MAX_SAFE_INTEGER)) },
      );
    },
  },
  keepFor: ({ retain }, { count, end, now, finished }) =>
    count > 0 ? end - now + retain : (finished.at(-1)?.end ?? now - retain) + retain - now,
  history: (_, { count, start, end, finished }) =>
    [...finished, ...(count > 0 ? [{ count, start, end }] : [])]
      .map((window): WindowCount => ({ start: window.start / 1000, end: window.end / 1000, count: window.count }))
      .toReversed(),
};

const plan = planned<CalendarWindowOptions>(counted, 'cp');

export const calendarWindow = {
  ...counted,
  following: followingOf(counted),
  variants: { rollover: plan, credits: plan },
};

/**
 * What counts where a function says by the request where windows begin, and nobody asked it: it keeps to the window that runs, so that
 * what is only looked at, or given back, is that of this window.
 */
export function followingOf<O, P extends CalendarWindowParameters>(
  algorithm: Algorithm<O, P, CalendarWindowState>,
): Algorithm<O, P, CalendarWindowState> {
  const { prefetch: _, ...rest } = algorithm;
  return { ...rest, script: 'following-window' };
}

/** Reads which windows are counted. Throws `RateLimitConfigError`. */
export function calendarOf(
  options: CalendarOptions,
  location: string,
): Pick<CalendarWindowParameters, 'calendar' | 'retain' | 'follows'> {
  const period = oneOf(location, 'period', options.period, PERIODS);
  const timezone = orElse(options.timezone, 'UTC');
  if (!isTimezone(timezone)) {
    const wants = "an IANA time zone such as 'UTC' or 'Europe/Berlin'";
    throw new RateLimitConfigError(messages.wrongOption(location, 'timezone', timezone, wants));
  }
  const retain = options.retain === undefined ? 0 : duration(location, 'retain', options.retain);
  if (retain / SHORTEST[period] > MAX_RETAINED) {
    const wants = `at most ${MAX_RETAINED} windows of a ${period}`;
    throw new RateLimitConfigError(messages.wrongOption(location, 'retain', options.retain, wants));
  }
  const { anchor } = options;
  if (anchor === undefined) return { retain, calendar: new Calendar(period, timezone), follows: false };
  if (!isAnchored(period))
    throw new RateLimitConfigError(planMessages.anchorPeriod(location, period, ANCHORED_PERIODS));
  if (asksForAnchor(options)) return { retain, calendar: new Calendar(period, timezone), follows: true };
  const at = fixedAnchor(anchor, timezone, location);
  return { retain, calendar: new AnchoredCalendar(period, timezone, at), follows: false };
}

function isAnchored(period: Period): period is AnchoredPeriod {
  return (ANCHORED_PERIODS as readonly Period[]).includes(period);
}

/** The window to count in: the one that holds now, or, where nothing says which, the stored one if it runs. */
function windowFor({ calendar, follows }: CalendarWindowParameters, stored: WindowState | undefined, now: number) {
  if (!follows) return calendar.windowAt(now);
  const isFollowed = stored !== undefined && stored.count > 0 && now < stored.end;
  if (isFollowed && (now >= stored.start || isEarlier(stored, now))) return stored satisfies CalendarWindow;
  // What was charged before is of whichever window that was, and none of this one.
  return { start: now - (now % 1000), end: calendar.windowAt(now).end };
}

/** Whether the clock was set back by less than a window. */
function isEarlier({ start, end, last }: WindowState, now: number): boolean {
  return now < start && last - now < end - start;
}

function reopen(
  parameters: CalendarWindowParameters,
  stored: CalendarWindowState | undefined,
  now: number,
  state: CalendarWindowState,
): void {
  const { retain } = parameters;
  const { start, end } = windowFor(parameters, stored, now);
  state.now = now;
  state.migrated = false;
  state.count = 0;
  state.start = start;
  state.end = end;
  state.last = now;
  state.finished = NONE_FINISHED;
  if (stored === undefined) return;
  const { count } = stored;
  if (stored.finished.length > 0) state.finished = stored.finished.filter((window) => window.end + retain > now);
  if (count === 0) return;
  if (now >= stored.end) {
    const finished = { count, start: stored.start, end: stored.end };
    const isKnown = state.finished.at(-1)?.start === stored.start;
    if (finished.end + retain > now && !isKnown) state.finished = [...state.finished, finished];
    return;
  }
  state.count = count;
  if (isEarlier(stored, now)) {
    state.start = stored.start;
    state.end = stored.end;
  } else {
    // What was charged before the stored window is none of this one.
    const isLater = stored.start > start && now >= stored.start;
    if (isLater) state.start = stored.start;
    state.migrated = stored.end !== end || (stored.start !== start && !isLater);
  }
  if (!state.migrated) state.last = stored.last;
}
