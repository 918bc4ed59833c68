import type { FeaturedLimit, LimitFeature } from '../limits/limit-feature.js';

/** What a limit may have beyond its algorithm. */
export interface Feature<Terms extends object = never> {
  /** What the options of a limit say of it, which were checked: plain values; nothing if the limit is without it. */
  terms(options: object): object | undefined;
  /** What a limit has of it. Throws `RateLimitConfigError` if it cannot have it. */
  readonly of: (limit: FeaturedLimit, terms: Terms, location: string) => LimitFeature;
}
