import type { FeatureTerms } from '../limits/limit-feature.js';
import type { Feature } from './feature.js';
import { type RecordedLimitOptions, usage, type WithUsage } from './usage/usage.js';

/** What limits may have beyond their algorithms. A feature that works together with another one comes after it. */
export const features: readonly Feature[] = [usage];

/** The options of an algorithm with those of features that it may have. */
export type WithFeatures<Options> = WithUsage<Options>;

/** The options of features. */
export type FeatureOptions = RecordedLimitOptions;

/** The terms of features, for a limit whose options were checked. */
export function featureTerms(options: object): FeatureTerms[] {
  return features.flatMap((feature) => {
    const terms: object | undefined = feature.terms(options);
    return terms === undefined ? [] : [{ of: feature.of, terms }];
  });
}
