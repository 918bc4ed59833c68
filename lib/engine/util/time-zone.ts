/** A local date and time of day, in milliseconds as if it were UTC. */
export type LocalTime = number;

const DAY_MS = 86_400_000;
const UTC = 'UTC';

/** Valid time zones by name, cached because creating a format is slow. */
const known = new Map<string, TimeZone>();

/** An IANA time zone. It converts times to local times and back. */
export class TimeZone {
  private constructor(private readonly format: Intl.DateTimeFormat | undefined) {}

  /** The zone with a name; `undefined` if the name is unknown. */
  static named(name: string): TimeZone | undefined {
    let zone = known.get(name);
    if (zone === undefined) {
      try {
        zone = new TimeZone(name === UTC ? undefined : formatOf(name));
      } catch {
        return undefined;
      }
      known.set(name, zone);
    }
    return zone;
  }

  /** The milliseconds by which its clocks are ahead of UTC at a time. */
  offsetAt(millis: number): number {
    if (this.format === undefined) return 0;
    const shown: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
    for (const { type, value } of this.format.formatToParts(millis)) shown[type] = value;
    const year = shown.era === 'B' ? 1 - Number(shown.year) : Number(shown.year);
    const { month, day, hour, minute, second } = shown;
    const local = dateOf(year, Number(month), Number(day), Number(hour), Number(minute), Number(second));
    // The format leaves out fractions of a second.
    return local - Math.floor(millis / 1000) * 1000;
  }

  localTime(millis: number): LocalTime {
    return millis + this.offsetAt(millis);
  }

  /**
   * The time at which clocks show a local time: the first one if they show it twice; later by the gap if they skip it. Changes are at most
   * a day, and there are never two within two days.
   */
  instantOf(local: LocalTime): number {
    const before = local - this.offsetAt(local - DAY_MS);
    if (this.localTime(before) === local) return before;
    const after = local - this.offsetAt(local + DAY_MS);
    return this.localTime(after) === local ? after : before;
  }

  /** The date at a time, such as `2026-01-31`. */
  dateAt(millis: number): string {
    return new Date(this.localTime(millis)).toISOString().slice(0, -'T00:00:00.000Z'.length);
  }

  /** A time in ISO 8601, such as `2026-01-31T09:30:00.000+01:00`. In UTC if its local time is beyond the last date. */
  isoAt(millis: number): string {
    const offset = this.offsetAt(millis);
    const local = new Date(millis + offset);
    if (offset === 0 || Number.isNaN(local.getTime())) return new Date(millis).toISOString();
    const text = local.toISOString();
    const minutes = Math.floor(Math.abs(offset) / 60_000);
    const [hours, rest] = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0'));
    return `${text.slice(0, -1)}${offset < 0 ? '-' : '+'}${hours}:${rest}`;
  }
}

/** The time zone with a name that has been checked. */
export function zoneNamed(name: string): TimeZone {
  const zone = TimeZone.named(name);
  if (zone === undefined) throw new RangeError(`no time zone '${name}'`);
  return zone;
}

/** A local time from its parts; a month is 1 to 12, and values beyond their range carry over. */
export function dateOf(year: number, month: number, day: number, hour = 0, minute = 0, second = 0): LocalTime {
  const date = new Date(0);
  // Unlike `Date.UTC`, this keeps years below 100 unchanged.
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  return date.getTime();
}

/** A local time some months later: on the same day, or on the last day of a shorter month. */
export function monthsLater(local: LocalTime, months: number): LocalTime {
  const date = new Date(local);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const lastDay = new Date(dateOf(date.getUTCFullYear(), date.getUTCMonth() + 2, 0)).getUTCDate();
  return date.setUTCDate(Math.min(day, lastDay));
}

const DATE =
  /^(\d{4})-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?([Zz]|([+-])(\d\d):?(\d\d)?)?)?)?$/;

/**
 * Reads an ISO 8601 date, with or without a time, into milliseconds since the epoch. A text without an offset is in the zone. `undefined`
 * if it isn't a valid date.
 */
export function readDate(text: string, zone: TimeZone): number | undefined {
  const found = DATE.exec(text);
  if (found === null) return undefined;
  const [, year, month, day = 1, hour = 0, minute = 0, second = 0, fraction = 0, offset, sign, hours, minutes = 0] =
    found as (string | undefined)[];
  const millis = Math.floor(Number(`0.${fraction}`) * 1000);
  const time = [Number(hour), Number(minute), Number(second)] as const;
  const isMidnight = time[0] === 24 && time[1] === 0 && time[2] === 0 && millis === 0;
  if ((time[0] > 23 && !isMidnight) || time[1] > 59 || time[2] > 59) return undefined;
  const date = dateOf(Number(year), Number(month), Number(day));
  // `Date` moves a day that the month does not have into the next month.
  if (new Date(date).getUTCMonth() !== Number(month) - 1 || new Date(date).getUTCDate() !== Number(day))
    return undefined;
  const local = date + (time[0] * 3600 + time[1] * 60 + time[2]) * 1000 + millis;
  if (offset === undefined) return zone.instantOf(local);
  const ahead = sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000);
  return local - ahead;
}

/** Throws for an unknown time zone. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    era: 'narrow',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
}
