import { Calendar, isTimezone } from '../../algorithms/calendar.js';
import { type Duration, longDuration } from '../../algorithms/options.js';
import { RateLimitConfigError } from '../../errors/errors.js';
import { messages } from '../../errors/messages/general.js';
import { usageMessages } from './messages.js';

/** How long the units that a limit has charged can be read, and in which time zone its days are. */
export interface UsageOptions {
  /** How long a day can be read after its end: milliseconds or a duration such as `'400d'`, from 1 day to 10 years. */
  keep: Duration;
  /**
   * The IANA time zone of the days, such as `'Europe/Berlin'`.
   * @default the limit's own `timezone`, or 'UTC'
   */
  timezone?: string;
  /**
   * The most keys to record, approximately. Further keys are charged but not recorded; an export, and `usage` of such a key, log
   * that. In process the number is exact; on Redis each slot has its part of it, with room to spare. From 1 to 100,000,000.
   * @default no bound
   */
  maxKeys?: number;
}

/** A limit's `usage`, as it was read. */
export interface UsageTerms {
  /** How long a day can be read after its end, in microseconds. */
  readonly keep: number;
  /** The IANA time zone of the days. */
  readonly timezone: string;
  /** About the most keys that have a record; nothing for no bound. */
  readonly maxKeys?: number;
}

/** How a limit records what it charges. */
export interface UsageRecording extends UsageTerms {
  readonly days: Calendar;
}

/** What a limit with such terms does. */
export function recordingOf(terms: UsageTerms): UsageRecording {
  return { ...terms, days: new Calendar('day', terms.timezone) };
}

const OPTIONS = ['keep', 'timezone', 'maxKeys'] as const satisfies readonly (keyof UsageOptions)[];
export const MIN_KEEP_MS = 86_400_000;
export const MAX_KEEP_MS = 10 * 365.25 * 86_400_000;
export const KEEP_WANTS = "milliseconds or a duration such as '400d', at least 1 day and at most 10 years";
const ZONE_WANTS = "an IANA time zone such as 'UTC' or 'Europe/Berlin'";

export const MOST_KEYS = 100_000_000;
const MAX_KEYS_WANTS = 'a whole number from 1 to 100000000';

/** What excludes records: units that are taken before they are asked for, and a limit above, which has the record. */
const EXCLUDED = { prefetch: usageMessages.usageWithPrefetch, within: usageMessages.usageWithin } as const;

/** Reads a limit's `usage`. `timezone` is the limit's own. Throws `RateLimitConfigError`. */
export function usageTerms(
  options: { readonly usage?: unknown; readonly timezone?: unknown },
  location: string,
): UsageTerms | undefined {
  const { usage } = options;
  if (usage === undefined) return undefined;
  for (const [other, message] of Object.entries(EXCLUDED)) {
    if ((options as Record<string, unknown>)[other] !== undefined) throw new RateLimitConfigError(message(location));
  }
  // One that is wrong is told of as the limit's own.
  const own = isTimezone(options.timezone) ? options.timezone : 'UTC';
  if (typeof usage === 'number' || typeof usage === 'string') {
    return { keep: keepOf(location, 'usage', usage), timezone: own };
  }
  if (typeof usage !== 'object' || usage === null || Array.isArray(usage)) {
    throw new RateLimitConfigError(messages.wrongOption(location, 'usage', usage, usageMessages.wants()));
  }
  const within = `${location}.usage`;
  for (const name of Object.keys(usage)) {
    if (!(OPTIONS as readonly string[]).includes(name)) {
      throw new RateLimitConfigError(messages.unknownOption(within, name, OPTIONS));
    }
  }
  const { keep, timezone = own, maxKeys } = usage as Partial<Record<keyof UsageOptions, unknown>>;
  const terms = { keep: keepOf(within, 'keep', keep), timezone, ...(maxKeys === undefined ? {} : { maxKeys }) };
  if (maxKeys !== undefined && !isKeyCount(maxKeys)) {
    throw new RateLimitConfigError(messages.wrongOption(within, 'maxKeys', maxKeys, MAX_KEYS_WANTS));
  }
  if (!isTimezone(timezone)) {
    throw new RateLimitConfigError(messages.wrongOption(within, 'timezone', timezone, ZONE_WANTS));
  }
  return terms as UsageTerms;
}

function keepOf(location: string, option: string, value: unknown): number {
  if (value === undefined) throw new RateLimitConfigError(messages.missingOption(location, option, KEEP_WANTS));
  const ms = longDuration(value);
  if (!(ms >= MIN_KEEP_MS && ms <= MAX_KEEP_MS)) {
    throw new RateLimitConfigError(messages.wrongOption(location, option, value, KEEP_WANTS));
  }
  return Math.round(ms * 1000);
}

function isKeyCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_KEYS;
}
