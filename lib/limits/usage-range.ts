import { DateTime } from 'luxon';
import type { CalendarWindow } from '../algorithms/calendar.js';
import { type DayUnits, LONGEST_DAY } from './usage-days.js';
import type { UsageRecording } from './usage-terms.js';

/** Times whose days are asked for, in microseconds: from the first one on, before the second one. Either may be infinite. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** Units of a day. */
export interface NamedUnits {
  /** Such as `2026-11-22`, in the time zone of the limit's usage. */
  readonly day: string;
  readonly units: number;
}

/** The units of a key. */
export interface KeyDays {
  /** As the store knows it. */
  readonly key: string;
  /** Those that have any, the oldest first. */
  readonly days: readonly NamedUnits[];
}

/** The middle of a day is so many microseconds after its start, roughly. */
const HALF_A_DAY = 12 * 3_600_000_000;

/**
 * The units of recorded days by the days of a range, those that are kept and have any. A day that was recorded by another time zone is
 * the one in which its middle lies.
 */
export function namedUnits(
  { days: calendar, keep, timezone }: UsageRecording,
  { from, to }: TimeRange,
  recorded: readonly DayUnits[],
  now: number,
): NamedUnits[] {
  const named = new Map<string, number>();
  for (const { start, units } of recorded) {
    const window = calendar.windowAt(start * 1e6 + HALF_A_DAY);
    if (units === 0 || window.end + keep <= now || window.end <= from || window.start >= to) continue;
    const name = nameOf(window, timezone);
    named.set(name, (named.get(name) ?? 0) + units);
  }
  return [...named].map(([day, units]) => ({ day, units }));
}

/** Since when, in seconds, days may have begun that are asked for: the first one of a range, or that is kept. */
export function earliestStart({ keep }: UsageRecording, { from }: TimeRange, now: number): number {
  return Math.floor(Math.max(from, now - keep) / 1e6) - 2 * LONGEST_DAY;
}

function nameOf({ start }: CalendarWindow, zone: string): string {
  return DateTime.fromMillis(start / 1000, { zone }).toISODate()!;
}
