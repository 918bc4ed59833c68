import { createClient, isClient, type RedisConnection } from '../redis/client.js';
import { FallbackStore, type StoreReport } from './fallback.store.js';
import { MemoryStore } from './memory.store.js';
import { RedisStore } from './redis.store.js';
import type { Store } from './store.js';

export interface StoreSettings {
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
  /** Is told when Redis begins to fail and when it is back. */
  readonly report: (report: StoreReport) => void;
}

/** The store that an app asks: in process, or Redis with what happens while it fails. */
export async function createStore({ redis, ownsClient, maxKeys, report, ...options }: StoreSettings): Promise<Store> {
  const local = new MemoryStore({ maxKeys });
  if (redis === undefined) return local;
  const client = isClient(redis) ? redis : await createClient(redis);
  // What fails is told by the checks; an error that nobody listens to would end the process.
  client.on('error', () => undefined);
  return new FallbackStore(new RedisStore(client, { ...options, ownsClient: ownsClient ?? client !== redis }), local, {
    report,
  });
}
