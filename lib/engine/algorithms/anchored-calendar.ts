import { type LocalTime, monthsLater, type TimeZone, zoneNamed } from '../util/time-zone.js';
import type { CalendarWindow, CalendarWindows, Period } from './calendar.js';

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
export class AnchoredCalendar implements CalendarWindows {
  readonly name: string;
  private readonly zone: TimeZone;
  /** The local time of the anchor. */
  private readonly wall: LocalTime;
  private last: CalendarWindow = { start: 0, end: 0 };

  constructor(
    private readonly period: AnchoredPeriod,
    timezone: string,
    /** In milliseconds since the epoch. */
    anchor: number,
  ) {
    // Held units may be settled with any anchor.
    this.name = `${period} ${timezone}`;
    this.zone = zoneNamed(timezone);
    this.wall = this.zone.localTime(anchor);
  }

  windowAt(now: number): CalendarWindow {
    if (now < this.last.start || now >= this.last.end) this.last = this.compute(Math.floor(now / 1000));
    return this.last;
  }

  private compute(millis: number): CalendarWindow {
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
