import { afterAll, beforeAll, describe, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RedisStore } from '../../../lib/index.js';
import { type MakeStore, storeConformance } from '../../../lib/testing/store/index.js';
import { connectRedis } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';
import { variants } from '../../support/tier.js';
import { MapStore } from './map-store.js';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

// MemoryStore and RedisStore on a clock that is moved: in test/storage/contract.
const stores: Record<string, MakeStore> = {
  'a store on transactions': ({ clock }) => new MapStore({ clock }),
  'a store with a clock of its own': () => new MapStore(),
  'RedisStore on the clock of its server': () =>
    new RedisStore(redis, { prefix: 'conformance', timeoutMs: PATIENCE_MS }),
};

for (const [name, make] of variants(Object.entries(stores))) storeConformance(make, { describe, it, name });
