import ms from 'ms';
import { isPromise } from '../util/awaitable.js';
import { bare, getOrMake } from '../util/objects.js';

/**
 * A length of time: a number of milliseconds, or a string of a number and a unit, such as `'250ms'`, `'10s'`, `'1.5h'` or `'1 week'`. The
 * units are `ms`, `s`, `m` (minutes), `h`, `d`, `w` and `y` (365.25 days), and their English names, in upper or lower case. A string
 * without a unit, such as `'60'`, is an error: it would mean milliseconds, but is often meant as seconds. `'1M'` is also an error, because
 * `M` is the month in date formats, and months differ in length.
 */
export type Duration = number | string;

/** The units of a duration, for messages. */
export const DURATION_UNITS = '(units: ms, s, m, h, d, w, y)';
/** The expected form of a duration, for messages. */
export const DURATION_FORM = `milliseconds or a duration such as '250ms', '10s', '1m' ${DURATION_UNITS}`;

/** The maximum interval in milliseconds: a year of 365.25 days, like in the `ms` package. */
export const MAX_INTERVAL_MS = ms('1y');

/**
 * The options that an object has itself or through its class, but not those of `Object.prototype`, which other code may have let an
 * attacker extend.
 */
export function givenOptions<T extends object>(options: T, known: readonly (keyof T)[]): T {
  const given = bare({}) as T;
  const prototype: unknown = Object.getPrototypeOf(options);
  if (prototype === Object.prototype || prototype === null) {
    const candidates = known.length > FEW ? namesAmong(options, known) : known;
    for (const option of candidates) if (Object.hasOwn(options, option)) given[option] = options[option];
    return given;
  }
  for (const option of known) {
    const everyones: unknown = (Object.prototype as Record<PropertyKey, unknown>)[option];
    if (Object.hasOwn(options, option) || options[option] !== everyones) given[option] = options[option];
  }
  return given;
}

/** Going through so few names is faster than looking up each of an object. */
const FEW = 5;
/** The positions of the names in each of the constant lists of options. */
const POSITIONS = new WeakMap<readonly PropertyKey[], ReadonlyMap<PropertyKey, number>>();

/** The names of an object's own properties that are in a list, in the order of the list. */
function namesAmong<Name extends PropertyKey>(object: object, list: readonly Name[]): readonly Name[] {
  const positions = getOrMake(POSITIONS, list, () => new Map(list.map((name, index) => [name, index])));
  const found: number[] = [];
  let isOrdered = true;
  for (const name of Object.getOwnPropertyNames(object)) {
    const position = positions.get(name);
    if (position === undefined) continue;
    isOrdered &&= found.length === 0 || found.at(-1)! < position;
    found.push(position);
  }
  if (!isOrdered) found.sort((a, b) => a - b);
  return found.map((position) => list[position]!);
}

/** Returns the value, which may be `null`, or `other` if it is `undefined`. */
export function orElse<T>(value: T | undefined, other: T): T {
  return value === undefined ? other : value;
}

/** Returns true if a value is an object, but not a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns true if a value is an object whose members are options. Those of a promise or a `Map` are not, so they would be lost. */
export function isObjectOfOptions(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !isPromise(value) && !(Symbol.iterator in value);
}

/** A duration in a limit's default name. */
export function showDuration(value: Duration): string {
  return typeof value === 'number' ? `${value}ms` : value.replaceAll(/\s+/g, '');
}

/** Every duration in text form ends with a unit. Otherwise `ms` would read it as milliseconds. */
const WITH_UNIT = /[a-z]$/i;
/** `ms` would read these as minutes. */
const IN_MONTHS = /[^A-Za-z]M$/;

/** Returns true if the unit of a text is the month in date formats. */
export function isInMonths(value: unknown): boolean {
  return typeof value === 'string' && IN_MONTHS.test(value);
}

/** A number without a unit, short enough to be repeated in a message. */
const WITHOUT_UNIT = /^\s*[\d.]{1,12}(?:e\d{1,2})?\s*$/i;
const MONTHS = /^\s*[\d.]+\s*(?:mo|mos|mon|month|months)\s*$/i;

/** A suggestion for a text that is almost a duration, to append to a message; empty for anything else. */
export function durationHint(got: unknown): string {
  if (typeof got !== 'string') return '';
  const month = "for a month '30d' or the algorithm 'calendar-window' with period: 'month'";
  if (isInMonths(got)) return `; write '1m' for a minute, and ${month}`;
  if (MONTHS.test(got)) return `; write ${month}`;
  return WITHOUT_UNIT.test(got) ? `; write '${got.trim()}s' for seconds, or '${got.trim()}ms' for milliseconds` : '';
}

/** The last text that was read: checks and their callers read the same one in turn. */
let lastText = '1y';
let lastRead = MAX_INTERVAL_MS;

/** Reads a duration of any length into milliseconds; NaN if it is not a duration. */
export function longDuration(value: unknown): number {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return NaN;
  if (value !== lastText) [lastText, lastRead] = [value, readText(value)];
  return lastRead;
}

function readText(text: string): number {
  if (text.length > 100 || !WITH_UNIT.test(text) || isInMonths(text)) return NaN;
  const milliseconds: number | undefined = ms(text as ms.StringValue);
  return milliseconds ?? NaN;
}

/** Reads a duration of a call into milliseconds: 0 or more, at most a year; `undefined` if it is not one. */
export function milliseconds(value: unknown): number | undefined {
  const read = longDuration(value);
  return read >= 0 && read <= MAX_INTERVAL_MS ? read : undefined;
}

/** Reads a duration into whole microseconds, more than 0 and at most a year; NaN if it is not one. */
export function microseconds(value: unknown): number {
  const read = longDuration(value);
  const micros = Math.round(read * 1000);
  return micros >= 1 && read <= MAX_INTERVAL_MS ? micros : NaN;
}
