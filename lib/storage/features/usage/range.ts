import type { CalendarWindow } from '../../../engine/algorithms/calendar.js';
import { zoneNamed } from '../../../engine/util/time-zone.js';
import type { UsageRecording } from './terms.js';

/** Units that were charged on a day. */
export interface DayUnits {
  /** When the day began, in seconds since the epoch. */
  readonly start: number;
  units: number;
}

/** The days of a key, each with its start, the oldest first. */
export type UsageDays = DayUnits[];

/** The longest day in seconds, even if clocks are set back by two hours; lua/features/usage.lua has the same. */
export const LONGEST_DAY = 26 * 3600;

/** Adds units to the day that began at `start`. */
export function chargeDay(days: UsageDays, start: number, units: number): void {
  const at = lastDayAt(days, start);
  const day = days[at];
  if (day?.start === start) day.units = clamped(day.units + units);
  else days.splice(at + 1, 0, { start, units: clamped(units) });
}

/** Corrects the units of the day on which they were charged, if that is kept. `chargedAt` is in microseconds. */
export function correctDay(days: UsageDays, chargedAt: number, difference: number): void {
  const second = Math.floor(chargedAt / 1e6);
  const day = days[lastDayAt(days, second)];
  if (day !== undefined && second < day.start + LONGEST_DAY) day.units = clamped(day.units + difference);
}

/** Subtracts units whose time of charge is unknown from the newest days with units, as far back as days are kept. */
export function giveBack(days: UsageDays, units: number): void {
  for (let i = days.length - 1; i >= 0 && units > 0; i--) {
    const day = days[i]!;
    const given = Math.min(units, day.units);
    day.units -= given;
    units -= given;
  }
}

/** Removes days that ended more than `keep` microseconds ago. */
export function forgetDays(days: UsageDays, now: number, keep: number): void {
  const oldest = Math.floor((now - keep) / 1e6) - LONGEST_DAY;
  const kept = lastDayAt(days, oldest) + 1;
  if (kept > 0) days.splice(0, kept);
}

/** The last day that began at or before a time; -1 if there is none. */
function lastDayAt(days: UsageDays, second: number): number {
  let at = days.length - 1;
  while (at >= 0 && days[at]!.start > second) at--;
  return at;
}

function clamped(units: number): number {
  return Math.max(0, Math.min(units, Number.MAX_SAFE_INTEGER));
}

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
