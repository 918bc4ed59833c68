import type { Duration } from '../../../engine/options/values.js';
import type { Feature } from '../feature.js';
import { LimitUsage, limitUsageOf } from './limit-usage.js';
import { type UsageOptions, type UsageTerms, usageTerms } from './terms.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { RecentUsage } from '../../../engine/limits/key-reports.js';
import { zoneNamed } from '../../../engine/util/time-zone.js';
import type { ReadableStore } from '../../stores/feature-reading.js';
import { recordOf } from './stores.js';

/** How many days to display, including today. */
const DAYS = 30;
const DAY_MS = 86_400_000;

/** The charges of a counter on the last days that are kept; `undefined` if the store records none. */
export async function recentUsageOf(store: ReadableStore, counter: Counter): Promise<RecentUsage | undefined> {
  const { days, keep, timezone } = limitUsageOf(counter.limit)!.recording;
  const zone = zoneNamed(timezone);
  const startOf = (micros: number) => days.windowAt(micros).start / 1000;
  // Set below, when the store calls back with its time.
  let since = 0;
  const found = await recordOf(store, counter, (now) => {
    const earliest = zone.instantOf(zone.localTime(startOf(now)) - (DAYS - 1) * DAY_MS);
    since = Math.max(earliest, startOf(now - keep));
    return { from: since * 1000, to: Infinity };
  });
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
