import type { OptionKind } from '../options/option-row.js';
import { dateOf, type LocalTime, monthsLater, TimeZone, zoneNamed } from '../util/time-zone.js';

/** The calendar's windows. A week begins on Monday (ISO 8601). */
export const PERIODS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

/**
 * A window of the calendar.
 * @useDeclaredType
 */
export type Period = (typeof PERIODS)[number];

/** Periods of constant length in milliseconds, even in zones whose clocks change by half an hour. */
const WITHIN_A_DAY: Partial<Record<Period, number>> = { second: 1000, minute: 60_000, hour: 3_600_000 };

/** A window of the calendar in microseconds since the epoch; the end is exclusive. */
export interface CalendarWindow {
  readonly start: number;
  readonly end: number;
}

/** Windows without gaps between them. */
export interface CalendarWindows {
  /** Distinguishes them from the windows of other periods and time zones. */
  readonly name: string;
  /** The window that contains `now`, in microseconds. */
  windowAt(now: number): CalendarWindow;
}

export function isTimezone(value: unknown): value is string {
  return typeof value === 'string' && TimeZone.named(value) !== undefined;
}

/** Time zones. */
export const timezone: OptionKind<string> = {
  expected: "an IANA time zone such as 'UTC' or 'Europe/Berlin'",
  isValid: isTimezone,
  schema: { type: 'string', minLength: 1 },
};

/** The windows of one period in one time zone. For successive times, each window is computed once. */
abstract class ZonedWindows<P extends Period> implements CalendarWindows {
  readonly name: string;
  protected readonly zone: TimeZone;
  private last: CalendarWindow = { start: 0, end: 0 };

  constructor(
    protected readonly period: P,
    timezone: string,
  ) {
    this.name = `${period} ${timezone}`;
    this.zone = zoneNamed(timezone);
  }

  windowAt(now: number): CalendarWindow {
    if (now < this.last.start || now >= this.last.end) this.last = this.compute(Math.floor(now / 1000));
    return this.last;
  }

  protected abstract compute(millis: number): CalendarWindow;
}

/** The calendar's own windows. */
export class Calendar extends ZonedWindows<Period> {
  protected compute(millis: number): CalendarWindow {
    const { zone, period } = this;
    const local = zone.localTime(millis);
    const length = WITHIN_A_DAY[period];
    if (length !== undefined) {
      // `%` is negative before 1970.
      const start = millis - (local - Math.floor(local / length) * length);
      return { start: start * 1000, end: (start + length) * 1000 };
    }
    let start = zone.instantOf(startOf(period, local, 0));
    let end = zone.instantOf(startOf(period, local, 1));
    // If clocks are set back over midnight, they show the previous day again. That day has ended.
    for (let next = 2; end <= millis; next++) [start, end] = [end, zone.instantOf(startOf(period, local, next))];
    return { start: start * 1000, end: end * 1000 };
  }
}

/** The start of a period of a day or longer: of the one that contains a local time, or of one of the next. */
function startOf(period: Period, local: LocalTime, next: number): LocalTime {
  const date = new Date(local);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
  switch (period) {
    case 'year':
      return dateOf(year + next, 1, 1);
    case 'quarter':
      return dateOf(year, month - ((month - 1) % 3) + next * 3, 1);
    case 'month':
      return dateOf(year, month + next, 1);
    case 'week':
      return dateOf(year, month, day - ((date.getUTCDay() + 6) % 7) + next * 7);
    default:
      return dateOf(year, month, day + next);
  }
}

/** The periods that an anchor can start: those of a day or longer. */
export const ANCHORED_PERIODS = ['day', 'week', 'month', 'quarter', 'year'] as const satisfies readonly Period[];

/**
 * A window that can begin at an anchor.
 * @useDeclaredType
 */
export type AnchoredPeriod = (typeof ANCHORED_PERIODS)[number];

const DAY_MS = 86_400_000;

/** Each period in days, or in months. */
const DAYS: Partial<Record<AnchoredPeriod, number>> = { day: 1, week: 7 };
const MONTHS: Partial<Record<AnchoredPeriod, number>> = { month: 1, quarter: 3, year: 12 };

/**
 * Windows that begin at the local time of an anchor. The nth begins n periods after it, always counted from the anchor itself: on the
 * anchor's day of the month, or on the last day of a shorter month. If the clocks skip the local time, it is moved later by the gap; if it
 * occurs twice, the first one counts.
 */
export class AnchoredCalendar extends ZonedWindows<AnchoredPeriod> {
  /** The local time of the anchor. */
  private readonly wall: LocalTime;

  /** `anchor`: milliseconds since the epoch. It isn't part of the name, since held units may be settled with any anchor. */
  constructor(period: AnchoredPeriod, timezone: string, anchor: number) {
    super(period, timezone);
    this.wall = this.zone.localTime(anchor);
  }

  protected compute(millis: number): CalendarWindow {
    let number = this.numberNear(millis);
    while (this.startOf(number) > millis) number--;
    while (this.startOf(number + 1) <= millis) number++;
    return { start: this.startOf(number) * 1000, end: this.startOf(number + 1) * 1000 };
  }

  /** The number of the window at a time, starting from an estimate that is off by a few windows at most. */
  private numberNear(millis: number): number {
    const local = this.zone.localTime(millis);
    const days = DAYS[this.period];
    if (days !== undefined) return Math.floor((local - this.wall) / (days * DAY_MS));
    return Math.floor((monthOf(local) - monthOf(this.wall)) / MONTHS[this.period]!);
  }

  private startOf(number: number): number {
    const { wall, period } = this;
    const days = DAYS[period];
    return this.zone.instantOf(
      days === undefined ? monthsLater(wall, number * MONTHS[period]!) : wall + number * days * DAY_MS,
    );
  }
}

function monthOf(local: LocalTime): number {
  const date = new Date(local);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
