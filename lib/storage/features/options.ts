import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { OptionRow, OptionRows } from '../../engine/options/option-row.js';
import { candidateOptions } from './candidates/options.js';
import { candidateVersion } from './candidates/second-version.js';
import type { FeatureOptions } from './index.js';
import { borrowingOptions } from './borrowing/terms.js';
import { checkPrefetch, prefetchOptions } from './prefetch/terms.js';
import { reserveOptions } from './priorities/options.js';
import type { SecondVersion } from './second-version.js';
import { checkWorld } from './regions/terms.js';
import { shareOptions } from './shares/options.js';
import { checkShare } from './shares/tenant-weights.js';
import { usageOptions } from './usage/terms.js';

/** The options of each feature. They are separate from the features, since the command line program needs no more. */
const list: readonly OptionRows[] = [
  reserveOptions,
  borrowingOptions,
  prefetchOptions,
  usageOptions,
  shareOptions,
  candidateOptions,
];

/** The rows of all of them. */
export const featureRows = Object.assign({}, ...list) as Record<keyof FeatureOptions, OptionRow>;

/** What of them is wrong beyond single values. */
const checks: readonly ((options: object, limit: CompiledLimit | undefined, location: string) => void)[] = [
  checkPrefetch,
  checkShare,
  checkWorld,
];

/**
 * Refuses wrong options of features, also those that do not go with the parameters of a limit. Throws `RateLimitConfigError`.
 *
 * @param limit the limit compiled without features; `undefined` if its other options are not known
 */
export function checkFeatures(options: object, limit: CompiledLimit | undefined, location: string): void {
  for (const check of checks) check(options, limit, location);
}

const secondVersions: readonly SecondVersion[] = [candidateVersion];

/** How the options of a limit say what is counted beside it; `undefined` if no feature reads that. */
export const secondVersion: SecondVersion | undefined = secondVersions[0];
