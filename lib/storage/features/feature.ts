import type { FeaturedLimit, FeatureOfOptions, LimitFeature } from '../../engine/limits/limit-feature.js';
import type { Connection } from '../redis/connection.js';
import type { InstanceChannel } from '../redis/instance-channel.js';
import type { LocalDecisions } from '../stores/layers/local-decisions.js';
import type { OuterLayer } from '../stores/layers/outer-layer.js';
import type { StoreLayer } from '../stores/layers/store-layer.js';
import type { RedisStore } from '../stores/redis/redis.store.js';
import type { ReadableStore } from '../stores/feature-reading.js';
import type { Store } from '../stores/store.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Counter } from '../../engine/limits/counter.js';
import type { FirstUse } from '../../engine/util/first-use.js';
import type { Awaitable } from '../../engine/util/awaitable.js';
import type { BindKey, RequestTrait } from './request-trait.js';
import type { TenantsNow } from './tenants.js';

/** The Redis that counts for several regions. */
export interface HomePlace {
  /** The name of this region. */
  readonly region: string;
  readonly connection: Connection;
  /** Whether closing the store closes the connection. */
  readonly ownsClient: boolean;
  /** Called when it starts to fail, and when it is back. */
  readonly report: (
    news: { readonly state: 'failing'; readonly error: Error } | { readonly state: 'recovered' },
  ) => void;
}

/** What layers of features stand among, where counters live on Redis. */
export interface LayerSurroundings {
  /** The store at the bottom. */
  readonly store: RedisStore;
  readonly connection: Connection;
  /** On which instances publish what they do to counters. */
  readonly channel: InstanceChannel;
  /** Decides what cannot be asked. */
  readonly alone: LocalDecisions;
  readonly prefix: string;
  readonly timeoutMs: number;
  /** Where limits count that hold over several regions; `undefined` if there is one. */
  readonly home?: HomePlace | undefined;
  /** Finds limits for which nobody has asked. */
  readonly findLimit?: FindLimit | undefined;
}

/** Finds the declared limit of an `id` that decides now for an identity; nothing if there is none. */
export type FindLimit = (id: string, identity: string) => CompiledLimit | undefined;

/** Which of a limit's units are whose. */
export interface ShownUnits {
  /** How much its quota is above its own rate, which it borrows. */
  readonly above?: number;
  /** The units that others may not borrow. */
  readonly kept?: number;
  /** The units that each tenant may always use. */
  readonly floor?: number;
}

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
  trait?<Key>(options: object, location: string, bind: BindKey<Key>): RequestTrait<Key> | undefined;
  /** The first limit with the feature, with which its layers join the store stack. Without `use`, they join at start. */
  readonly use?: FirstUse;
  /** Its layer of the store stack, where counters live on Redis. */
  readonly layer?: (surroundings: LayerSurroundings) => Awaitable<((inner: Store) => StoreLayer) | undefined>;
  /** What is shown of a limit's own units; nothing of a limit that does not have the feature. */
  shown?(limit: CompiledLimit): ShownUnits | undefined;
  /** Reads the tenants of a counter; nothing of a limit without any. */
  readonly tenants?: (store: ReadableStore, counter: Counter) => Promise<TenantsNow | undefined> | undefined;
  /** Reads what explanations show of a counter besides its state; nothing of a limit that does not have the feature. */
  readonly explained?: (store: ReadableStore, counter: Counter) => Promise<object | undefined> | undefined;
  /** Its layer above all others: to these, what it adds to a check is the caller's. */
  readonly outerLayer?: (inner: Store) => OuterLayer;
  /** The option because of which no limit can be within one that has the feature. */
  readonly childless?: string;
}
