import type { FeaturedLimit, LimitFeature } from '../limits/limit-feature.js';

/** An option of a feature. */
export interface FeatureOption {
  /** Only a limit that has a name everywhere can have it: code finds what it keeps by the name. */
  readonly needsName?: true;
}

/** What a limit may have beyond its algorithm. */
export interface Feature<Terms extends object = never> {
  /** Its options of a limit, by their names. */
  readonly options: Readonly<Record<string, FeatureOption>>;
  /** Reads them, beside all others of the limit, into plain values; nothing if the limit is without it. Throws `RateLimitConfigError`. */
  terms(options: object, location: string): object | undefined;
  /** What a limit has of it. Throws `RateLimitConfigError` if it cannot have it. */
  readonly of: (limit: FeaturedLimit, terms: Terms, location: string) => LimitFeature;
}
