import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { OptionRow, OptionRows } from '../../engine/options/option-row.js';
import { candidateOptions, candidateVersion } from './candidates/options.js';
import type { SecondVersion } from './feature.js';
import type { FeatureOptions } from './index.js';
import { borrowingOptions } from './borrowing/terms.js';
import { checkPrefetch, prefetchOptions } from './prefetch/terms.js';
import { reserveOptions } from './priorities/priorities.js';
import { checkWorld } from './regions/terms.js';
import { shareOptions } from './shares/options.js';
import { checkShare } from './shares/tenant-weights.js';
import { usageOptions } from './usage/terms.js';

/** The options of each feature. They are separate from the features because the command line program doesn't need those. */
const list: readonly OptionRows[] = [
  reserveOptions,
  borrowingOptions,
  prefetchOptions,
  usageOptions,
  shareOptions,
  candidateOptions,
];

/** The rows of all options. */
export const featureRows = Object.assign({}, ...list) as Record<keyof FeatureOptions, OptionRow>;

/** Checks of combinations of options. */
const checks: readonly ((options: object, limit: CompiledLimit | undefined, location: string) => void)[] = [
  checkPrefetch,
  checkShare,
  checkWorld,
];

/**
 * Throws `RateLimitConfigError` for invalid options of features, and for those that don't match the parameters of a limit.
 *
 * @param limit the limit compiled without features; `undefined` if its other options are unknown
 */
export function checkFeatures(options: object, limit: CompiledLimit | undefined, location: string): void {
  for (const check of checks) check(options, limit, location);
}

/** A list, so that a feature can be removed by deleting its entries in this file. */
const secondVersions: readonly SecondVersion[] = [candidateVersion];

/** Reads the second version of a limit from its options; `undefined` if no feature has one. */
export const secondVersion: SecondVersion | undefined = secondVersions[0];
