import { createClient, isClient, isCluster, type RedisConnection, surviveErrors } from '../redis/client.js';
import { FallbackStore, type StoreReport } from './fallback.store.js';
import { MemoryStore } from './memory.store.js';
import { givenBackChannel } from '../redis/keys.js';
import { RefusalCacheStore } from './refusal-cache.store.js';
import { RedisStore } from './redis.store.js';
import { ScopedStore } from './scoped.store.js';
import type { Store } from './store.js';

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
  /**
   * Whether refusals are remembered.
   * @default false
   */
  readonly refusalCache?: boolean | undefined;
  /** Is told when Redis begins to fail and when it is back. */
  readonly report: (report: StoreReport) => void;
}

/** The store that an app asks: in process, or Redis with what happens while it fails, or the user's own. */
export async function createStore(settings: StoreSettings): Promise<Store> {
  const { store, redis, ownsClient, maxKeys, report, refusalCache = false, ...options } = settings;
  const local = new MemoryStore({ maxKeys });
  if (store !== undefined)
    return new ScopedStore(new FallbackStore(store, local, { report, closesPrimary: false }), local);
  if (redis === undefined) return local;
  const client = isClient(redis) ? redis : await createClient(redis);
  surviveErrors(client);
  const remote = new RedisStore(client, { ...options, ownsClient: ownsClient ?? client !== redis });
  const safe = new FallbackStore(remote, local, { report });
  // In a Cluster a check of several slots can be refused for units that are given back a moment later.
  const cached = refusalCache && !isCluster(client);
  return new ScopedStore(cached ? new RefusalCacheStore(safe, client, givenBackChannel(options.prefix)) : safe, local);
}
