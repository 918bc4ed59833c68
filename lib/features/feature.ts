import type { FeaturedLimit, LimitFeature } from '../limits/limit-feature.js';

/** What a limit may have beyond its algorithm. */
export interface Feature<Terms extends object = never> {
  /** Reads the checked options of a limit into plain values; `undefined` if the limit does not have the feature. */
  terms(options: object): object | undefined;
  /** The feature of a limit. Throws `RateLimitConfigError` if the limit cannot have it. */
  readonly of: (limit: FeaturedLimit, terms: Terms, location: string) => LimitFeature;
}
