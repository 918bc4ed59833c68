import type { CalendarWindow } from '../../../engine/algorithms/calendar.js';
import { zoneNamed } from '../../../engine/util/time-zone.js';
import { type DayUnits, LONGEST_DAY } from './days.js';
import type { UsageRecording } from './terms.js';

/** A time range in microseconds: `from` is included, `to` is not. Either may be infinite. */
export interface TimeRange {
  /** The start; -Infinity for none. */
  readonly from: number;
  /** The end, exclusive; Infinity for none. */
  readonly to: number;
}

/** The units of a day. */
export interface NamedUnits {
  /** The day, such as `2026-11-22`, in the time zone of the limit's usage. */
  readonly day: string;
  /** The units, more than 0. */
  readonly units: number;
}

/** The record of a counter. */
export interface Recorded {
  /** The days with any units, the oldest first. */
  readonly units: readonly NamedUnits[];
  /** True if the counter has no record and the limit left out keys beyond its `maxKeys`, so this key may be one of them. */
  readonly leftOut: boolean;
}

/** The units of a key per day. */
export interface KeyDays {
  /** The key as the store has it. */
  readonly key: string;
  /** The days with any units, the oldest first. */
  readonly days: readonly NamedUnits[];
}

/** The approximate time from the start of a day to its middle, in microseconds. */
const HALF_A_DAY = 12 * 3_600_000_000;

/**
 * The units per day of a range, for the days that are kept and have any. A day recorded in another time zone counts as the day that
 * contains its middle.
 */
export function namedUnits(
  recording: UsageRecording,
  { from, to }: TimeRange,
  recorded: readonly DayUnits[],
  now: number,
): NamedUnits[] {
  const { keep } = recording;
  const named = new Map<string, number>();
  for (const { start, units } of recorded) {
    if (units === 0) continue;
    const day = dayOf(recording, start);
    if (day.end + keep <= now || day.end <= from || day.start >= to) continue;
    const { name } = day;
    named.set(name, (named.get(name) ?? 0) + units);
  }
  return [...named].map(([day, units]) => ({ day, units }));
}

/** The earliest start of a requested day in seconds: the start of the range, or of the first day that is kept. */
export function earliestStart({ keep }: UsageRecording, { from }: TimeRange, now: number): number {
  return Math.floor(Math.max(from, now - keep) / 1e6) - 2 * LONGEST_DAY;
}

/** A day of a time zone. */
interface NamedDay extends CalendarWindow {
  readonly name: string;
}

/** Cached days. All keys of an export have the same days, and finding one is slow. */
const known = new WeakMap<UsageRecording, Map<number, NamedDay>>();
/** More days than a record has. */
const MOST_KNOWN = 10_000;

/** The day of a time zone that contains most of a recorded day. */
function dayOf(recording: UsageRecording, start: number): NamedDay {
  let days = known.get(recording);
  if (days === undefined) known.set(recording, (days = new Map()));
  let day = days.get(start);
  if (day === undefined) {
    const window = recording.days.windowAt(start * 1e6 + HALF_A_DAY);
    const name = zoneNamed(recording.timezone).dateAt(window.start / 1000);
    if (days.size === MOST_KNOWN) days.clear();
    days.set(start, (day = { ...window, name }));
  }
  return day;
}
