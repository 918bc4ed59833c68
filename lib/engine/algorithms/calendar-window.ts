import { configError } from '../errors/errors.js';
import { planMessages } from '../errors/messages/rates.js';
import type { Algorithm, WindowCount } from './algorithm.js';
import { readOptions, type ReadOptions, wrongOption } from '../options/check-options.js';
import { time, words } from '../options/kinds.js';
import type { OptionRows } from '../options/option-row.js';
import type { Duration } from '../options/values.js';
import { anchorOption, type AnchorOption, asksForAnchor, fixedAnchor } from './anchor.js';
import {
  ANCHORED_PERIODS,
  AnchoredCalendar,
  type AnchoredPeriod,
  Calendar,
  type CalendarWindow,
  type Period,
  PERIODS,
  timezone,
} from './calendar.js';
import { holdOptions, type HoldOptions, rateOptions } from './common-options.js';
import {
  type CalendarWindowParameters,
  type CalendarWindowState,
  type FinishedWindow,
  holdsOfWindow,
  prefetchOfWindow,
  windowCount,
  type WindowState,
} from './window-state.js';
import type { PlanOptions } from './plan/options.js';
import { shareOfUnits } from './share.js';

/**
 * A window of the calendar: a request of cost c is allowed if count + c <= rate. The count restarts with every second, minute,
 * hour, day, week (from Monday), month, quarter or year of a time zone, daylight saving time included.
 */
export type CalendarWindowOptions = {
  /** The algorithm. */
  algo: 'calendar-window';
  /** The number of units per window: a whole number >= 1. */
  rate: number;
} & CalendarOptions &
  HoldOptions &
  PlanOptions;

/** The options that select the calendar's windows. */
export type CalendarOptions = {
  /**
   * An IANA time zone, such as `'Europe/Berlin'`.
   * @default 'UTC'
   */
  timezone?: string | undefined;
  /**
   * The time for which the count of a window can still be read after its end: milliseconds or a duration such as `'7d'`, at most 1 year,
   * and at most 10,000 windows.
   * @default not at all
   */
  retain?: Duration | undefined;
} & (
  | {
      /** The length of the calendar's window. */
      period: Period;
      /** Not supported for windows shorter than a day. */
      anchor?: undefined;
    }
  | {
      /** The length of a window. */
      period: AnchoredPeriod;
      /**
       * The start of windows, such as a subscription's own month: a `Date`, an ISO 8601 date such as `'2026-01-31'` (in the `timezone`,
       * unless it contains an offset), milliseconds since the epoch, or a function of the context that returns one of these, or nothing for
       * the calendar's own windows. The nth window begins at the local time of the anchor, n periods later: an anchor on the 31st leads to
       * 28 February, and then 31 March again. Not available for periods below a day; a function cannot be combined with `prefetch`.
       * @default where the calendar's own windows begin
       */
      anchor: AnchorOption;
    }
);

const NONE_FINISHED: readonly FinishedWindow[] = [];

/** The maximum number of windows to keep. */
const MAX_RETAINED = 10_000;

/** The minimum length of each period, in microseconds. */
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

export const calendarOptions = {
  period: { kind: words(PERIODS), text: 'The window of the calendar.', required: true },
  timezone: { kind: timezone, text: "An IANA time zone, such as 'Europe/Berlin'.", default: 'UTC' },
  anchor: anchorOption,
  retain: {
    kind: time,
    text: "How long finished windows can be read, such as '7d'.",
    usual: 'not at all',
    isLong: true,
  },
  ...holdOptions,
} as const satisfies OptionRows;

const options = {
  rate: rateOptions.rate,
  ...calendarOptions,
} as const;

const counted: Algorithm<CalendarWindowOptions, CalendarWindowParameters, CalendarWindowState> = {
  name: 'calendar-window',
  code: 'cw',
  extraKeys: ['history'],
  options,
  borrowing: true,
  beyond: true,

  compile(given, location) {
    const read = readOptions(location, given, options);
    return { quota: read.rate, ...calendarOf(read, given, location) };
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
  planning: { code: 'cp' },
  holds: {
    ...holdsOfWindow,
    windows: ({ calendar }) => calendar.name,
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

export const calendarWindow = {
  ...counted,
  following: followingOf(counted),
};

/**
 * The algorithm to use if a function of the request determines the start of windows, but was not called. It keeps the stored window until
 * its end, so that reading and refunding apply to that window.
 */
export function followingOf<O, P extends CalendarWindowParameters>(
  algorithm: Algorithm<O, P, CalendarWindowState>,
): Algorithm<O, P, CalendarWindowState> {
  const { prefetch: _, ...rest } = algorithm;
  return { ...rest, script: 'following-window' };
}

/** Returns the calendar of the options. Throws `RateLimitConfigError`. */
export function calendarOf(
  options: ReadOptions<typeof calendarOptions>,
  given: CalendarOptions,
  location: string,
): Pick<CalendarWindowParameters, 'calendar' | 'retain' | 'follows'> {
  const { period, timezone: zone, anchor, retain = 0 } = options;
  if (retain / SHORTEST[period] > MAX_RETAINED) {
    const expected = `at most ${MAX_RETAINED} windows of a ${period}`;
    throw wrongOption(location, 'retain', given.retain, expected);
  }
  if (anchor === undefined) return { retain, calendar: new Calendar(period, zone), follows: false };
  if (!isAnchored(period))
    throw configError('SLUICE_UNSUPPORTED_OPTION', planMessages.anchorPeriod(location, period, ANCHORED_PERIODS));
  if (asksForAnchor(options)) return { retain, calendar: new Calendar(period, zone), follows: true };
  const at = fixedAnchor(anchor, zone, location);
  return { retain, calendar: new AnchoredCalendar(period, zone, at), follows: false };
}

function isAnchored(period: Period): period is AnchoredPeriod {
  return (ANCHORED_PERIODS as readonly Period[]).includes(period);
}

/** The window to count in: the current one or, if the anchor is unknown, the stored one until its end. */
function windowFor({ calendar, follows }: CalendarWindowParameters, stored: WindowState | undefined, now: number) {
  if (!follows) return calendar.windowAt(now);
  const isFollowed = stored !== undefined && stored.count > 0 && now < stored.end;
  if (isFollowed && (now >= stored.start || isEarlier(stored, now))) return stored satisfies CalendarWindow;
  // Earlier charges belong to the windows in which they were made, not to this one.
  return { start: now - (now % 1000), end: calendar.windowAt(now).end };
}

/** Returns true if the clock was set back by less than a window. */
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
    // Charges made before the stored window do not belong to it.
    const isLater = stored.start > start && now >= stored.start;
    if (isLater) state.start = stored.start;
    state.migrated = stored.end !== end || (stored.start !== start && !isLater);
  }
  if (!state.migrated) state.last = stored.last;
}
