import type { FeatureTerms } from '../limits/limit-feature.js';
import type { Feature } from './feature.js';
import { usage, type WithUsage } from './usage/usage.js';

/** What limits may have beyond their algorithms. One that does something together with another one stands behind it. */
export const features: readonly Feature[] = [usage];

/** The options of an algorithm with those of features that it may have. */
export type WithFeatures<Options> = WithUsage<Options>;

/** The names of all options of features. */
export const FEATURE_OPTIONS: readonly string[] = features.flatMap(({ options }) => Object.keys(options));

/** Those that only a limit with a name of its own everywhere can have. */
export const NAMED_OPTIONS = features.flatMap(({ options }) =>
  Object.keys(options).filter((option) => options[option]!.needsName === true),
);

/** Reads what a limit says of features. Throws `RateLimitConfigError`. */
export function featureTerms(options: object, location: string): FeatureTerms[] {
  return features.flatMap((feature) => {
    const terms: object | undefined = feature.terms(options, location);
    return terms === undefined ? [] : [{ of: feature.of, terms }];
  });
}
