import { afterAll, beforeAll, describe, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore } from '../../../lib/index.js';
import { type MakeStore, storeConformance } from '../../../lib/testing/store/index.js';
import { connectRedis } from '../../support/limits/stores.js';
import { variants } from '../../support/tier.js';
import { MapStore } from './map-store.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

const stores: Record<string, MakeStore> = {
  'a store on transactions': ({ clock }) => new MapStore({ clock }),
  'a store with a clock of its own': () => new MapStore(),
  MemoryStore: ({ clock }) => new MemoryStore({ clock }),
  RedisStore: () => new RedisStore(redis, { prefix: 'conformance', timeoutMs: PATIENCE_MS }),
};

for (const [name, make] of variants(Object.entries(stores))) storeConformance(make, { describe, it, name });
