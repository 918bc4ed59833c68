import type { Duration } from '../../../engine/options/values.js';
import type { Feature } from '../feature.js';
import { LimitUsage, limitUsageOf } from './limit-usage.js';
import { recentUsageOf } from './recent.js';
import { type UsageOptions, type UsageTerms, usageTerms } from './terms.js';

/** The `usage` option of limits that record the units they charge. */
export interface RecordedLimitOptions {
  /**
   * Records the units that the limit charges each key, by the days of a time zone, in the same call that charges them. Invoices
   * read them with `Limiter.usage` and `Limiter.exportUsage`. A duration such as `'400d'`, from 1 day to 10 years, is how long a
   * day can be read after its end; `{ keep, timezone }` also sets whose days are meant. Not for `concurrency` and `adaptive`, nor
   * with `prefetch`.
   * @default nothing is recorded
   */
  usage?: Duration | UsageOptions | undefined;
}

/** Options of algorithms: all record what they charge, except those that count what is in flight. */
export type WithUsage<Options> = Options extends { algo: 'concurrency' | 'adaptive' }
  ? Options
  : Options & RecordedLimitOptions;

/** Records the units that a limit charges, by days. */
export const usage: Feature<UsageTerms> = {
  terms: usageTerms,
  of: (limit, terms, location) => new LimitUsage(limit, terms, location),
  explained: (store, counter) =>
    limitUsageOf(counter.limit) && recentUsageOf(store, counter).then((found) => found && { usage: found }),
};
