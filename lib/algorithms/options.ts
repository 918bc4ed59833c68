import ms from 'ms';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';

/** A length of time: milliseconds, or a string that the `ms` package reads, such as `'250ms'`, `'10s'`, `'1m'`, `'1d'`. */
export type Duration = number | string;

/** The longest interval: a year of 365.25 days, as the `ms` package has it, in milliseconds. */
export const MAX_INTERVAL_MS = ms('1y');

const DURATION = "milliseconds or a duration such as '250ms', '10s', '1m'";

/**
 * The options that an object has itself or through its class, but not those that every object has: other code may have let an
 * attacker write to `Object.prototype`.
 */
export function givenOptions<T extends object>(options: T, known: readonly (keyof T)[]): T {
  const given = Object.create(null) as T;
  for (const option of known) {
    const everyones: unknown = (Object.prototype as Record<PropertyKey, unknown>)[option];
    if (Object.hasOwn(options, option) || options[option] !== everyones) given[option] = options[option];
  }
  return given;
}

/** The value, `null` included, or `other` if it is `undefined`. */
export function orElse<T>(value: T | undefined, other: T): T {
  return value === undefined ? other : value;
}

/** Reads a whole number. */
export function wholeNumber(
  location: string,
  option: string,
  value: unknown,
  { min = 1, max = Number.MAX_SAFE_INTEGER }: { min?: number; max?: number } = {},
): number {
  const wants = `a whole number >= ${min}${max < Number.MAX_SAFE_INTEGER ? ` and <= ${max}` : ''}`;
  if (value === undefined) throw new RateLimitConfigError(messages.missingOption(location, option, wants));
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw new RateLimitConfigError(messages.wrongOption(location, option, value, wants));
  }
  return value as number;
}

/** Reads a duration into whole microseconds: more than 0, at most a year. */
export function duration(location: string, option: string, value: unknown): number {
  const wants = `${DURATION}, more than 0 and at most 1 year`;
  if (value === undefined) throw new RateLimitConfigError(messages.missingOption(location, option, wants));
  const milliseconds = toMilliseconds(value);
  const micros = Math.round(milliseconds * 1000);
  if (!(micros >= 1) || !(milliseconds <= MAX_INTERVAL_MS)) {
    throw new RateLimitConfigError(messages.wrongOption(location, option, value, wants));
  }
  return micros;
}

/** Reads one of a list of words. */
export function oneOf<T extends string>(location: string, option: string, value: unknown, words: readonly T[]): T {
  const wants = `one of ${words.join(', ')}`;
  if (value === undefined) throw new RateLimitConfigError(messages.missingOption(location, option, wants));
  if (!words.includes(value as T)) throw new RateLimitConfigError(messages.wrongOption(location, option, value, wants));
  return value as T;
}

/** A duration in a limit's default name. */
export function showDuration(value: Duration): string {
  return typeof value === 'number' ? `${value}ms` : value.replaceAll(/\s+/g, '');
}

/** Reads a duration of any length into milliseconds; NaN if it is not a duration. */
export function longDuration(value: unknown): number {
  return toMilliseconds(value);
}

/** Reads a duration of a call into milliseconds: 0 or more, at most a year; `undefined` if it is not one. */
export function milliseconds(value: unknown): number | undefined {
  const read = toMilliseconds(value);
  return read >= 0 && read <= MAX_INTERVAL_MS ? read : undefined;
}

function toMilliseconds(value: unknown): number {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value === '' || value.length > 100) return NaN;
  const milliseconds: number | undefined = ms(value as ms.StringValue);
  return milliseconds ?? NaN;
}
