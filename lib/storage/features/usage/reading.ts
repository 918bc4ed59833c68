import { argumentError, RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { readMembers } from '../../../engine/limits/consume-options.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { readDate, zoneNamed } from '../../../engine/util/time-zone.js';
import type { Store } from '../../stores/store.js';
import { limitUsageOf } from './limit-usage.js';
import { usageMessages } from './messages.js';
import type { TimeRange } from './range.js';
import { pagesOf, unitsOf } from './stores.js';
import type { UsageRecording } from './terms.js';

/**
 * A point in time: a `Date`, milliseconds since the epoch, or an ISO 8601 text. A text without an offset is in the time zone of the limit's
 * usage; a date such as `'2026-11-01'` means the start of that day.
 */
export type UsageTime = Date | number | string;

/** The days to read: whole days that overlap the range. `from` is included, `to` is not. */
export interface UsageRange {
  /**
   * The start.
   * @default the oldest day that is kept
   */
  from?: UsageTime;
  /**
   * The end, exclusive.
   * @default no end: up to today
   */
  to?: UsageTime;
}

/** Options of an export of usage. */
export interface UsageExportOptions extends UsageRange {
  /**
   * The approximate number of keys to read at a time: a whole number from 1 to 10,000.
   * @default 500
   */
  batch?: number;
}

/** The units that a key was charged on a day. */
export interface DailyUsage {
  /** The day in the time zone of the limit's usage, such as `'2026-11-22'`. */
  readonly day: string;
  /** Units that were charged and not refunded. */
  readonly units: number;
}

/** The units that a key was charged. */
export interface Usage {
  /** The sum of the days. */
  readonly total: number;
  /** The days with any units, the oldest first. */
  readonly days: readonly DailyUsage[];
}

/** A row of an export. */
export interface KeyUsage extends DailyUsage {
  /** The key as stored: a key that is long, or has characters other than `[A-Za-z0-9_.:@-]`, is `#` and its hash. */
  readonly key: string;
}

const RANGE = ['from', 'to'] as const satisfies readonly (keyof UsageRange)[];
const EXPORT = [...RANGE, 'batch'] as const satisfies readonly (keyof UsageExportOptions)[];
const DEFAULT_BATCH = 500;
const MAX_BATCH = 10_000;

/** Reads the usage of a key. Throws `RateLimitArgumentError`. */
export async function usageOf(store: Store, counter: Counter, range: UsageRange | undefined): Promise<Usage> {
  const recording = recordingOf(counter.limit);
  const times = timesOf(recording, readMembers<UsageRange>(range, RANGE, usageMessages.notOptions));
  const days = await unitsOf(store, counter, times);
  return { total: days.reduce((sum, { units }) => sum + units, 0), days };
}

/** Reads the usage of all keys, key by key. Throws `RateLimitArgumentError` when it starts. */
export async function* exportOf(
  store: Store,
  limit: CompiledLimit,
  limitFor: (identity: string) => CompiledLimit,
  options: UsageExportOptions | undefined,
): AsyncGenerator<KeyUsage, void, undefined> {
  const recording = recordingOf(limit);
  const { batch = DEFAULT_BATCH, ...range } = readMembers<UsageExportOptions>(
    options,
    EXPORT,
    usageMessages.notOptions,
  );
  if (!Number.isSafeInteger(batch) || batch < 1 || batch > MAX_BATCH) {
    throw new RateLimitArgumentError(usageMessages.wrongBatch(batch, MAX_BATCH));
  }
  const times = timesOf(recording, range);
  for await (const page of pagesOf(store, limit, times, batch, limitFor)) {
    for (const { key, days } of page) for (const { day, units } of days) yield { key, day, units };
  }
}

function recordingOf(limit: CompiledLimit): UsageRecording {
  const usage = limitUsageOf(limit);
  if (usage === undefined) throw argumentError('SLUICE_UNSUPPORTED_CALL', usageMessages.noUsage(limit.name));
  return usage.recording;
}

function timesOf({ timezone }: UsageRecording, { from, to }: UsageRange): TimeRange {
  const range = {
    from: from === undefined ? -Infinity : microsOf('from', from, timezone),
    to: to === undefined ? Infinity : microsOf('to', to, timezone),
  };
  if (range.from <= range.to) return range;
  throw new RateLimitArgumentError(usageMessages.wrongRange(isoOf(range.from, timezone), isoOf(range.to, timezone)));
}

function microsOf(option: string, value: unknown, timezone: string): number {
  const time =
    value instanceof Date
      ? value.getTime()
      : typeof value === 'string'
        ? readDate(value, zoneNamed(timezone))
        : typeof value === 'number'
          ? value
          : undefined;
  if (time === undefined || Number.isNaN(new Date(time).getTime())) {
    throw new RateLimitArgumentError(usageMessages.wrongTime(option, value));
  }
  return time * 1000;
}

function isoOf(micros: number, timezone: string): string {
  return zoneNamed(timezone).isoAt(micros / 1000);
}
