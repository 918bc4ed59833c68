import { createClient, isClient, isCluster, type RedisConnection, ignoreConnectionErrors } from '../redis/client.js';
import { FallbackStore, type StoreReport } from '../stores/layers/fallback.store.js';
import { MemoryStore } from '../stores/memory/memory.store.js';
import { InstanceChannel } from '../redis/instance-channel.js';
import { givenBackChannel } from '../stores/redis/keys.js';
import { RefusalCacheStore } from '../stores/layers/refusal-cache.store.js';
import { RedisStore } from '../stores/redis/redis.store.js';
import { InstanceScopeStore } from '../stores/layers/instance.store.js';
import type { Store } from '../stores/store.js';
import { PrefetchStore } from '../stores/layers/prefetch.store.js';

export interface StoreSettings {
  /** The user's own store; it stays open. */
  readonly store?: Store | undefined;
  /** Where Redis is; without it everything is counted in this process. */
  readonly redis?: RedisConnection | undefined;
  /**
   * Whether closing the store closes the connection.
   * @default whether it is made here
   */
  readonly ownsClient?: boolean | undefined;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly maxKeys: number;
  /** @default 1_000 for each of `maxKeys`, and at least 16_000_000 */
  readonly maxBytes?: number | undefined;
  /**
   * Whether refusals are remembered.
   * @default false
   */
  readonly refusalCache?: boolean | undefined;
  /**
   * The part of each limit that is allowed in process while Redis fails.
   * @default 1
   */
  readonly localShare?: number | undefined;
  /** Is told when Redis begins to fail and when it is back. */
  readonly report: (report: StoreReport) => void;
  /** Is given the part of the store that falls back, if there is one. */
  readonly watch?: ((store: FallbackStore) => void) | undefined;
}

/** The store that an app asks: in process, or Redis with what happens while it fails, or the user's own. */
export async function createStore(settings: StoreSettings): Promise<Store> {
  const { store, redis, ownsClient, maxKeys, maxBytes, report, watch, refusalCache = false, ...rest } = settings;
  const { localShare = 1, ...options } = rest;
  // What is counted in process beside a store on a clock of its own goes by that clock, too.
  const local = new MemoryStore({ maxKeys, maxBytes, clock: store instanceof MemoryStore ? store.clock : undefined });
  const watched = (safe: FallbackStore) => {
    watch?.(safe);
    return safe;
  };
  if (store !== undefined)
    return new InstanceScopeStore(
      watched(new FallbackStore(store, local, { report, localShare, closesPrimary: false })),
      local,
    );
  if (redis === undefined) return local;
  const client = isClient(redis) ? redis : await createClient(redis);
  const owns = ownsClient ?? client !== redis;
  const release = ignoreConnectionErrors(client);
  // A connection of our own may fail once more while it ends.
  const remote = new RedisStore(client, { ...options, ownsClient: owns, ...(owns ? {} : { release }) });
  const safe = watched(new FallbackStore(remote, local, { report, localShare }));
  // In a Cluster a check of several slots can be refused for units that are given back a moment later.
  const cached = refusalCache && !isCluster(client);
  const channel = new InstanceChannel(client, givenBackChannel(options.prefix), options.timeoutMs);
  const remembering = cached ? new RefusalCacheStore(safe, channel) : safe;
  return new InstanceScopeStore(new PrefetchStore(remembering, channel), local);
}
