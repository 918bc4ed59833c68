import type { AlgorithmOptions } from '../../engine/algorithms/index.js';
import type { FeaturedLimit, FeatureOfOptions, FirstUse, LimitFeature } from '../../engine/limits/limit-feature.js';
import type { Connection } from '../redis/connection.js';
import type { InstanceChannel } from '../redis/instance-channel.js';
import type { CircuitReport } from '../stores/layers/circuit.js';
import type { LocalDecisions } from '../stores/layers/local-decisions.js';
import type { OuterLayer, StoreLayer } from '../stores/layers/store-layer.js';
import type { RedisStore } from '../stores/redis/redis.store.js';
import type { ReadableStore } from '../stores/feature-reading.js';
import type { Store } from '../stores/store.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { MetBy } from '../../engine/limits/limit-feature.js';
import type { Counter } from '../../engine/limits/counter.js';
import type { Awaitable } from '../../engine/util/awaitable.js';
import type { ExecutionContext } from '@nestjs/common';
import type { LimitKey } from '../../engine/limits/identity.js';
import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import type { OptionRows } from '../../engine/options/option-row.js';

/** The Redis server that counts for several regions, as a region reaches it. */
export interface HomePlace extends Pick<HomeServer, 'connection' | 'ownsClient'> {
  /** The name of this region. */
  readonly region: string;
  /** Called when the server starts to fail, once for each further reason, and when it has recovered. */
  readonly report: (news: CircuitReport) => void;
}

/** The surroundings of a feature's layer if counters are on Redis. */
export interface LayerSurroundings {
  /** The store at the bottom. */
  readonly store: RedisStore;
  readonly connection: Connection;
  /** The channel on which instances publish operations on counters. */
  readonly channel: InstanceChannel;
  /** Decides if the store can't be reached. */
  readonly alone: LocalDecisions;
  readonly prefix: string;
  readonly timeoutMs: number;
  /** The place where limits across regions count; `undefined` with a single region. */
  readonly home?: HomePlace | undefined;
  /** Finds limits that this instance has not used yet. */
  readonly findLimit?: FindLimit | undefined;
}

/** Finds the declared limit with an `id` that currently applies to an identity; `undefined` if there is none. */
export type FindLimit = (id: string, identity: string) => CompiledLimit | undefined;

/** The units of a limit by owner. */
export interface ShownUnits {
  /** The units of its quota above its own rate, which it borrows. */
  readonly above?: number;
  /** The units that others may not borrow. */
  readonly kept?: number;
  /** The units that each tenant may always use. */
  readonly floor?: number;
}

/** A feature that limits may have in addition to their algorithm. */
export interface Feature<Terms extends object = never> {
  /**
   * Reads the validated options of a limit into plain values; `undefined` if the limit doesn't have the feature. Throws
   * `RateLimitConfigError`.
   */
  terms?(options: object, location: string): object | undefined;
  /** Creates the feature of a limit. Throws `RateLimitConfigError` if the limit can't have it. */
  readonly of?: (limit: FeaturedLimit, terms: Terms, location: string) => LimitFeature;
  /** Creates the feature of a limit that has it through its algorithm's own options. */
  readonly ofOptions?: FeatureOfOptions;
  /** The trait of requests and calls that selects a version of a limit with these options; `undefined` if it has only one version. */
  trait?<Key>(options: object, location: string, bind: BindKey<Key>): RequestTrait<Key> | undefined;
  /** The first limit with the feature, which makes the feature's layers join the store stack. Without `use`, they join at start-up. */
  readonly use?: FirstUse;
  /** Its layer of the store stack, if counters are on Redis. */
  readonly layer?: (surroundings: LayerSurroundings) => Awaitable<((inner: Store) => StoreLayer) | undefined>;
  /** The own units of a limit for displays; `undefined` for a limit without the feature. */
  shown?(limit: CompiledLimit): ShownUnits | undefined;
  /** Reads the tenants of a counter; `undefined` for a limit without tenants. */
  readonly tenants?: (store: ReadableStore, counter: Counter) => Promise<TenantsNow | undefined> | undefined;
  /** Reads the details of a counter for explanations, in addition to its state; `undefined` for a limit without the feature. */
  readonly explained?: (store: ReadableStore, counter: Counter) => Promise<object | undefined> | undefined;
  /** Its layer above all others. These treat entries that it adds to a check as the caller's. */
  readonly outerLayer?: (inner: Store) => OuterLayer;
  /** The option that keeps other limits from being within a limit with the feature. */
  readonly childless?: string;
}

/** A property of requests and calls that selects a version of a limit. `Key` is a key that was bound. */
export interface RequestTrait<Key> {
  /** The name of the option, on the limit and on calls. */
  readonly option: string;
  /** The option whose function `metBy` may call, for error messages. */
  readonly calls: string;
  /** Finds it in a request: a key, or a function of the app, which may return nothing. */
  readonly by: Key | ((context: ExecutionContext) => Awaitable<unknown>);
  /**
   * The version of a limit for requests and calls with this value. Throws `RateLimitArgumentError`.
   *
   * @param said `null` if a function found nothing in a request, `undefined` if a call doesn't set it
   * @param looks true if a call only reads
   */
  metBy(said: unknown, limit: CompiledLimit, looks?: boolean): MetBy;
  /** The value for explanations; `undefined` if it is unknown. */
  shown?(metBy: MetBy): Readonly<Record<string, unknown>> | undefined;
}

/** Binds the key of an option. */
export type BindKey<Key> = (key: LimitKey, location: string, option: string) => Key;

/** The options that limits support. */
export interface KnownOptions {
  /** Returns true for an option that limits of any algorithm may have. */
  readonly isCommon: (option: string) => boolean;
  /** The options of an algorithm's limits. */
  readonly optionsOf: (algorithm: Algorithm) => OptionRows;
}

/** Reads a second version of a limit, which is counted in addition: `CompiledLimit.candidate`. */
export interface SecondVersion<Definition = never, Patch = never> {
  /** The name of the option. */
  readonly option: string;
  /** All options of its algorithm; `undefined` without a second version. Throws `RateLimitConfigError`. */
  read(definition: Definition, location: string, known: KnownOptions): AlgorithmOptions | undefined;
  /** The same options, for a definition that was read before. */
  optionsOf(definition: Definition): AlgorithmOptions | undefined;
  /** The second version in a definition after a patch: the one in the patch, applied to the changed limit, or the previous one. */
  patched(definition: Definition, patch: Patch): object;
}

/** The current share of one tenant. */
export interface TenantNow {
  /** Its name as stored on Redis. */
  readonly id: string;
  readonly weight: number;
  /** The units that it may use in a span, regardless of others. */
  readonly part: number;
  /** The units that it used in the last span. */
  readonly used: number;
}

/** The active tenants of a counter. */
export interface TenantsNow {
  /** The tenants with the highest expected use by weight, the busiest first. There may be more tenants. */
  readonly tenants: readonly TenantNow[];
  /** The sum of the weights of all active tenants. */
  readonly weights: number;
  /** The units that come back in a span, and those that each tenant may always use. */
  readonly units: number;
  readonly floor: number;
  /** The span, in milliseconds. */
  readonly spanMs: number;
}

/** The Redis server that counts for several regions. */
export interface HomeServer {
  readonly connection: Connection;
  /** True if closing the store closes the connection. */
  readonly ownsClient: boolean;
  /** The `prefix` of the apps. */
  readonly prefix: string;
  readonly timeoutMs: number;
}
