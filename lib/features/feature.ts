import type { FeaturedLimit, FeatureOfOptions, LimitFeature } from '../limits/limit-feature.js';
import type { InstanceChannel } from '../redis/instance-channel.js';
import type { OuterLayer } from '../stores/layers/outer-layer.js';
import type { StoreLayer } from '../stores/layers/store-layer.js';
import type { Store } from '../stores/store.js';
import type { BindKey, RequestTrait } from './request-trait.js';

/** What a limit may have beyond its algorithm. */
export interface Feature<Terms extends object = never> {
  /**
   * Reads the checked options of a limit into plain values; `undefined` if the limit does not have the feature. Throws
   * `RateLimitConfigError`.
   */
  terms?(options: object, location: string): object | undefined;
  /** The feature of a limit. Throws `RateLimitConfigError` if the limit cannot have it. */
  readonly of?: (limit: FeaturedLimit, terms: Terms, location: string) => LimitFeature;
  /** The feature of a limit that has it by its algorithm's own options. */
  readonly ofOptions?: FeatureOfOptions;
  /** What requests and calls have to say to meet a limit with these options; nothing if that has no versions for them. */
  trait?(options: object, location: string, bind: BindKey): RequestTrait | undefined;
  /** Its layer of the store stack, where counters live on Redis: the layer hands on all checks until a limit has the feature. */
  readonly layer?: (inner: Store, channel: InstanceChannel) => StoreLayer;
  /** Its layer above all others: to these, what it adds to a check is the caller's. */
  readonly outerLayer?: (inner: Store) => OuterLayer;
  /** The option because of which no limit can be within one that has the feature. */
  readonly childless?: string;
}
