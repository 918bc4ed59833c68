import { DateTime, IANAZone, type DateTimeUnit } from 'luxon';
import type { OptionKind } from '../options/option-row.js';

/** The calendar's windows. A week begins on Monday (ISO 8601). */
export const PERIODS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

/**
 * A window of the calendar.
 * @useDeclaredType
 */
export type Period = (typeof PERIODS)[number];

/** Periods of constant length in milliseconds, even where clocks change by half an hour. */
const WITHIN_A_DAY: Partial<Record<Period, number>> = { second: 1000, minute: 60_000, hour: 3_600_000 };

/** A window of the calendar in microseconds since the epoch; the end is exclusive. */
export interface CalendarWindow {
  readonly start: number;
  readonly end: number;
}

/** Windows that follow each other without a gap. */
export interface CalendarWindows {
  /** Distinguishes them from those of other periods and time zones. */
  readonly name: string;
  /** The window that holds `now`, in microseconds. */
  windowAt(now: number): CalendarWindow;
}

export function isTimezone(value: unknown): value is string {
  // Unlike `IANAZone.isValidZone`, this checks a name once per process.
  return typeof value === 'string' && IANAZone.create(value).isValid;
}

/** Time zones. */
export const timezone: OptionKind<string> = {
  expected: "an IANA time zone such as 'UTC' or 'Europe/Berlin'",
  isValid: isTimezone,
  schema: { type: 'string', minLength: 1 },
};

/** Finds the windows of one period in one time zone. For successive times, each window is computed once. */
export class Calendar implements CalendarWindows {
  private last: CalendarWindow = { start: 0, end: 0 };

  constructor(
    private readonly period: Period,
    private readonly timezone: string,
  ) {}

  get name(): string {
    return `${this.period} ${this.timezone}`;
  }

  windowAt(now: number): CalendarWindow {
    if (now < this.last.start || now >= this.last.end) this.last = this.compute(now);
    return this.last;
  }

  private compute(now: number): CalendarWindow {
    const millis = Math.floor(now / 1000);
    const at = DateTime.fromMillis(millis, { zone: this.timezone });
    const length = WITHIN_A_DAY[this.period];
    if (length !== undefined) {
      const start = millis - ((millis + at.offset * 60_000) % length);
      return { start: start * 1000, end: (start + length) * 1000 };
    }
    const start = this.startOf(at);
    const end = this.startOf(start.plus({ [this.period]: 1 }));
    return { start: start.toMillis() * 1000, end: end.toMillis() * 1000 };
  }

  /** If daylight saving time ends at midnight, a day has two midnights, and begins with the first. */
  private startOf(at: DateTime): DateTime {
    const start = at.startOf(this.period satisfies DateTimeUnit);
    const before = start.minus({ milliseconds: 1 });
    return before.day === start.day ? before.startOf(this.period) : start;
  }
}
