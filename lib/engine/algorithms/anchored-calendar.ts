import { DateTime, IANAZone } from 'luxon';
import type { CalendarWindow, CalendarWindows, Period } from './calendar.js';

/** The periods that an anchor can start: all of a day or longer. */
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
 * Windows that begin at the local time of an anchor. The nth begins n periods after it, always counted from the anchor itself: on
 * its day of the month, or on the last day of a shorter month. A local time that the clocks skip is moved later by the gap; of
 * one that occurs twice, the first counts.
 */
export class AnchoredCalendar implements CalendarWindows {
  readonly name: string;
  private readonly zone: IANAZone;
  /** The anchor's local time, as if it were UTC. */
  private readonly wall: DateTime<true>;
  private last: CalendarWindow = { start: 0, end: 0 };

  constructor(
    private readonly period: AnchoredPeriod,
    timezone: string,
    /** In milliseconds since the epoch. */
    anchor: number,
  ) {
    // Held units may be settled under any anchor.
    this.name = `${period} ${timezone}`;
    this.zone = IANAZone.create(timezone);
    this.wall = DateTime.fromMillis(this.localTime(anchor), { zone: 'utc' }) as DateTime<true>;
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
    const local = this.localTime(millis);
    const days = DAYS[this.period];
    if (days !== undefined) return Math.floor((local - this.wall.toMillis()) / (days * DAY_MS));
    const { year, month } = DateTime.fromMillis(local, { zone: 'utc' });
    return Math.floor((12 * (year - this.wall.year) + month - this.wall.month) / MONTHS[this.period]!);
  }

  private startOf(number: number): number {
    const days = DAYS[this.period];
    const wall =
      days === undefined
        ? this.wall.plus({ months: number * MONTHS[this.period]! })
        : this.wall.plus({ days: number * days });
    return this.instantOf(wall.toMillis());
  }

  private localTime(millis: number): number {
    return millis + this.offsetAt(millis);
  }

  /** When clocks show a local time. They change by a day at most, and not twice within two days. */
  private instantOf(local: number): number {
    const before = local - this.offsetAt(local - DAY_MS);
    if (this.localTime(before) === local) return before;
    const after = local - this.offsetAt(local + DAY_MS);
    return this.localTime(after) === local ? after : before;
  }

  private offsetAt(millis: number): number {
    return Math.round(this.zone.offset(millis) * 60_000);
  }
}
