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
