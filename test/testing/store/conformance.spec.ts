import { afterAll, beforeAll, describe, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore } from '../../../lib/index.js';
import { storeConformance } from '../../../lib/testing/store/index.js';
import { connectRedis } from '../../support/limits/stores.js';
import { MapStore } from './map-store.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

storeConformance(({ clock }) => new MapStore({ clock }), { describe, it, name: 'a store on transactions' });
storeConformance(() => new MapStore(), { describe, it, name: 'a store with a clock of its own' });
storeConformance(({ clock }) => new MemoryStore({ clock }), { describe, it, name: 'MemoryStore' });
storeConformance(() => new RedisStore(redis, { prefix: 'conformance', timeoutMs: PATIENCE_MS }), {
  describe,
  it,
  name: 'RedisStore',
});
