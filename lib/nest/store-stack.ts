import { InstanceChannel } from '../storage/redis/instance-channel.js';
import {
  connectionOf,
  createClient,
  ignoreConnectionErrors,
  isClient,
  isCluster,
  type RedisConnection,
} from '../storage/redis/client.js';
import type { Connection } from '../storage/redis/connection.js';
import type { StoreReport } from '../storage/stores/layers/circuits.js';
import { DeadlineStore, leavesAll } from '../storage/stores/layers/deadline.store.js';
import { FallbackStore } from '../storage/stores/layers/fallback.store.js';
import { InstanceScopeStore } from '../storage/stores/layers/instance.store.js';
import { ListStore } from '../app/overrides/lists/list.store.js';
import type { ListVerdicts } from '../app/overrides/lists/lists.js';
import type { FindLimit, HomePlace, LayerSurroundings } from '../storage/features/feature.js';
import { layersOfFeatures, outerLayers } from '../storage/features/index.js';
import { LocalDecisions } from '../storage/stores/layers/local-decisions.js';
import { OuterLayer } from '../storage/stores/layers/store-layer.js';
import { RefusalCacheStore } from '../storage/stores/layers/refusal-cache.store.js';
import { MemoryStore as PublicMemoryStore, RedisStore as PublicRedisStore } from '../storage/features/own-stores.js';
import { MemoryStore } from '../storage/stores/memory/memory.store.js';
import { givenBackChannel } from '../storage/stores/redis/keys.js';
import { RedisStore } from '../storage/stores/redis/redis.store.js';
import type { Store, StoreDecision } from '../storage/stores/store.js';
import type { FirstUse } from '../engine/limits/limit-feature.js';
import type { CompiledLimit } from '../engine/limits/compiled-limit.js';
import type { DecisionStream } from '../storage/telemetry/decision-stream.js';
import { ObservedStore } from '../storage/telemetry/observed.store.js';

/** The place where an app counts: in process, unless one of these is set. */
export interface CountingPlace {
  /** Decides every check itself, and never fails; for example a store that allows everything. */
  readonly replacement?: Store | undefined;
  /** The user's own store, which stays open. */
  readonly store?: Store | undefined;
  /** The connection to Redis. */
  readonly redis?: RedisConnection | Connection | undefined;
  /**
   * True if closing the store closes the connection.
   * @default whether the connection is made here
   */
  readonly ownsClient?: boolean | undefined;
  /** The home Redis, which counts for several regions. */
  readonly home?: HomePlace | undefined;
  /** Finds limits of the app for counters that no request refers to. */
  readonly findLimit?: FindLimit | undefined;
}

/** The settings of an app's store, and what it reports to. */
export interface StoreSettings extends CountingPlace {
  readonly prefix: string;
  readonly timeoutMs: number;
  /**
   * The maximum time that checks wait for others while many are in flight, in milliseconds.
   * @default 0
   */
  readonly gatherMs?: number | undefined;
  readonly maxKeys: number;
  /** @default 1_000 for each of `maxKeys`, and at least 16_000_000 */
  readonly maxBytes?: number | undefined;
  /**
   * True if rejections are cached.
   * @default false
   */
  readonly refusalCache?: boolean | undefined;
  /**
   * The share of each limit that is allowed in process while Redis fails.
   * @default 1
   */
  readonly localShare?: number | undefined;
  /** Called when Redis starts to fail, and when it has recovered. */
  readonly report: (report: StoreReport) => void;
  /**
   * Receives all decisions.
   * @default decisions are not reported, nor to OpenTelemetry
   */
  readonly decisions?: DecisionStream | undefined;
  /**
   * The clients that are exempt from limits, and those that are denied.
   * @default nobody
   */
  readonly lists?: ListVerdicts | undefined;
  /** True if OpenTelemetry receives metrics. If it is not installed, `true` is an error, and `undefined` disables them. */
  readonly telemetry?: boolean | undefined;
}

/** The store at the bottom of a stack. */
interface Base {
  readonly store: Store;
  /** True if it can fail, and other instances also count in it. */
  readonly isShared: boolean;
  /** Its store and connection on Redis, and the channel on which instances publish their changes of counters. */
  readonly onRedis?: Pick<LayerSurroundings, 'store' | 'connection' | 'channel'>;
  readonly remembersRefusals?: boolean;
}

/** The layers of an app's store, with the channel on which its instances publish their changes of counters. */
export class StoreStack extends OuterLayer {
  private readonly withdrawals: (() => void)[] = [];

  constructor(
    inner: Store,
    private readonly channel: InstanceChannel | undefined,
  ) {
    super(inner);
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return this.inner.decideOne(limit, identity, cost);
  }

  /** Adds a layer when the first limit needs it. */
  join(use: FirstUse | undefined, add: () => void): void {
    if (use === undefined) add();
    else this.withdrawals.push(use.whenUsed(add));
  }

  /** Adds a layer on top of all others. */
  cover(layer: (inner: Store) => OuterLayer): void {
    this.put(layer);
  }

  override async close(): Promise<void> {
    for (const withdraw of this.withdrawals) withdraw();
    this.channel?.close();
    await super.close();
  }
}

/** Builds the store of an app from the layers that it needs. */
export async function createStoreStack(settings: StoreSettings): Promise<StoreStack> {
  const { decisions, telemetry, report, localShare, lists, store: own, maxKeys, maxBytes } = settings;
  // Counters in process use the clock of the app's own store if that has one.
  const local = new MemoryStore({ maxKeys, maxBytes, clock: own instanceof MemoryStore ? own.clock : undefined });
  const { store, isShared, onRedis, remembersRefusals } = await baseOf(settings, local);
  const channel = onRedis?.channel;
  const fallback = { report, localShare: localShare ?? 1, closesPrimary: own === undefined };
  const alone = new LocalDecisions(local, fallback.localShare);
  const ofFeatures = onRedis === undefined ? [] : await layersOfFeatures({ ...settings, ...onRedis, alone });
  // From top to bottom. A function or a lazily loaded module may add a limit at any time.
  const layers = [
    ...ofFeatures.map(({ layer, use }) => use === undefined && layer),
    channel && remembersRefusals && ((inner: Store) => new RefusalCacheStore(inner, channel)),
    isShared && ((inner: Store) => new FallbackStore(inner, local, fallback)),
  ];
  const shared = layers.reduceRight<Store>((inner, layer) => (layer ? layer(inner) : inner), store);
  const scopes = isShared ? new InstanceScopeStore(shared, local) : undefined;
  const observed = decisions && new ObservedStore(scopes ?? shared, decisions, telemetry);
  const stack = new StoreStack(observed ?? scopes ?? shared, channel);
  for (const { layer, use } of ofFeatures) if (use !== undefined) stack.join(use, () => scopes!.insert(layer));
  for (const { layer, use } of outerLayers) stack.join(use, () => stack.cover(layer));
  // The observing layer reports the decisions of lists. The layer of lists is added with the first entry. A replacement decides everything
  // itself.
  if (settings.replacement === undefined) {
    lists?.whenUsed(() => (observed ?? stack).insert((inner) => new ListStore(inner, lists)));
  }
  return stack;
}

/** The library's stores. The one in process responds synchronously, and the one on Redis has deadlines. */
const OURS = [PublicMemoryStore, PublicRedisStore, MemoryStore, RedisStore];

/** A store of the app may never respond, and neither may a method that it replaces in a store of the library. */
function withinTime(store: Store, timeoutMs: number): Store {
  const extended = OURS.find((ours) => store instanceof ours);
  return extended !== undefined && leavesAll(store, extended) ? store : new DeadlineStore(store, timeoutMs, extended);
}

async function baseOf(settings: StoreSettings, local: Store): Promise<Base> {
  const { replacement, store, redis, prefix, timeoutMs, gatherMs = 0, refusalCache = false } = settings;
  if (replacement !== undefined) return { store: replacement, isShared: false };
  if (store !== undefined) return { store: withinTime(store, timeoutMs), isShared: true };
  if (redis === undefined) return { store: local, isShared: false };
  const isGiven = isClient(redis);
  const connection = connectionOf(isGiven ? redis : await createClient(redis));
  const ownsClient = settings.ownsClient ?? !isGiven;
  const release = ignoreConnectionErrors(connection);
  // Our own connection may fail once more while it closes.
  const redisStore = new RedisStore(connection, {
    prefix,
    timeoutMs,
    gatherMs,
    ownsClient,
    ...(ownsClient ? {} : { release }),
  });
  const channel = new InstanceChannel(connection, givenBackChannel(prefix), timeoutMs);
  return {
    store: redisStore,
    isShared: true,
    onRedis: { store: redisStore, connection, channel },
    // In a Cluster, a check of several slots may be rejected because of units that are refunded a moment later.
    remembersRefusals: refusalCache && !isCluster(connection),
  };
}
