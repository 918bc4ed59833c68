import { DateTime, IANAZone, type DateTimeUnit } from 'luxon';

/** The calendar's windows. A week begins on Monday (ISO 8601). */
export const PERIODS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

export type Period = (typeof PERIODS)[number];

/** A window of the calendar in microseconds since the epoch, its end excluded. */
export interface CalendarWindow {
  readonly start: number;
  readonly end: number;
}

export function isTimezone(value: unknown): value is string {
  return typeof value === 'string' && IANAZone.isValidZone(value);
}

/** Finds the windows of one period in one time zone; asked for one instant after another it computes each window once. */
export class Calendar {
  private last: CalendarWindow = { start: 0, end: 0 };

  constructor(
    private readonly period: Period,
    private readonly timezone: string,
  ) {}

  /** The window that holds `now`, in microseconds. */
  windowAt(now: number): CalendarWindow {
    if (now < this.last.start || now >= this.last.end) this.last = this.compute(now);
    return this.last;
  }

  private compute(now: number): CalendarWindow {
    const at = DateTime.fromMillis(Math.floor(now / 1000), { zone: this.timezone });
    const start = at.startOf(this.period satisfies DateTimeUnit);
    const end = start.plus({ [this.period]: 1 }).startOf(this.period);
    return { start: start.toMillis() * 1000, end: end.toMillis() * 1000 };
  }
}
