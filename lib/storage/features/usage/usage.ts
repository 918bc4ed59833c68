import type { Duration } from '../../../engine/options/values.js';
import type { Feature } from '../feature.js';
import { LimitUsage, limitUsageOf } from './limit-usage.js';
import { type UsageOptions, type UsageRecording, type UsageTerms, usageTerms } from './terms.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { RecentUsage } from '../../../engine/limits/key-reports.js';
import { zoneNamed } from '../../../engine/util/time-zone.js';
import { read, type ReadableStore } from '../../stores/feature-reading.js';
import type { Store } from '../../stores/store.js';
import { ownUnitsOf, recordedInMemory } from './stores.js';
import type { Recorded, TimeRange } from './range.js';
import { RedisUsageReader } from './redis-reader.js';

/** How many days to display, including today. */
const DAYS = 30;
const DAY_MS = 86_400_000;

/** The recent charges of a counter; `undefined` if the store records none. */
export async function recentUsageOf(store: ReadableStore, counter: Counter): Promise<RecentUsage | undefined> {
  const { limit } = counter;
  const { recording } = limitUsageOf(limit)!;
  return read<Promise<RecentUsage | undefined>>(store, limit, {
    name: 'usage',
    counter,
    inMemory: (parts) => recent(recording, parts.now(), async (range) => recordedInMemory(parts, counter, range)),
    onRedis: (parts) => recent(recording, parts.now(), (range) => new RedisUsageReader(parts).recorded(counter, range)),
    elsewhere: (own: Store) =>
      recent(recording, Date.now() * 1000, async (range) => {
        const units = await ownUnitsOf(own, counter, range);
        return units && { units, leftOut: false };
      }),
  });
}

/** Reads the last days that are kept. */
async function recent(
  { days, keep, timezone }: UsageRecording,
  now: number,
  readRange: (range: TimeRange) => Promise<Recorded | undefined>,
): Promise<RecentUsage | undefined> {
  const zone = zoneNamed(timezone);
  const startOf = (micros: number) => days.windowAt(micros).start / 1000;
  const earliest = zone.instantOf(zone.localTime(startOf(now)) - (DAYS - 1) * DAY_MS);
  const since = Math.max(earliest, startOf(now - keep));
  const found = await readRange({ from: since * 1000, to: Infinity });
  if (found === undefined) return undefined;
  const { units, leftOut } = found;
  return { timezone, since: zone.dateAt(since), days: units, ...(leftOut && { leftOut }) };
}

/** The `usage` option of limits that record the units they charge. */
export interface RecordedLimitOptions {
  /**
   * Records the units that the limit charges each key, per day of a time zone, in the same call that charges them. Read them with
   * `Limiter.usage` and `Limiter.exportUsage`, for example for invoices. A duration such as `'400d'`, from 1 day to 10 years, sets how long
   * a day can be read after its end; `{ keep, timezone }` also sets the time zone of the days. Not for `concurrency` and `adaptive`, nor
   * with `prefetch`.
   * @default usage is not recorded
   */
  usage?: Duration | UsageOptions | undefined;
}

/** Options of algorithms. All of them can record their charges, except those that count units in flight. */
export type WithUsage<Options> = Options extends { algo: 'concurrency' | 'adaptive' }
  ? Options
  : Options & RecordedLimitOptions;

/** Records the units that a limit charges, per day. */
export const usage: Feature<UsageTerms> = {
  terms: usageTerms,
  of: (limit, terms, location) => new LimitUsage(limit, terms, location),
  explained: (store, counter) =>
    limitUsageOf(counter.limit) && recentUsageOf(store, counter).then((found) => found && { usage: found }),
};
