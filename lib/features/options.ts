import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { OptionRow, OptionRows } from '../options/option-row.js';
import type { FeatureOptions } from './index.js';
import { checkPrefetch, prefetchOptions } from './prefetch/terms.js';
import { usageOptions } from './usage/terms.js';

/** The options of each feature. They are separate from the features, since the command line program needs no more. */
const list: readonly OptionRows[] = [prefetchOptions, usageOptions];

/** The rows of all of them. */
export const featureRows = Object.assign({}, ...list) as Record<keyof FeatureOptions, OptionRow>;

/** What of them the parameters of a limit refuse, which was compiled without features. */
const checks: readonly ((options: object, limit: CompiledLimit, location: string) => void)[] = [checkPrefetch];

/** Refuses options of features that do not go with the parameters of a limit. Throws `RateLimitConfigError`. */
export function checkFeatures(options: object, limit: CompiledLimit, location: string): void {
  for (const check of checks) check(options, limit, location);
}
