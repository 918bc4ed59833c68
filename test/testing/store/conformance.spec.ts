import { afterAll, beforeAll, describe, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { RedisStore } from '../../../lib/index.js';
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
// MemoryStore and RedisStore on a clock that is moved: in test/storage/contract.
storeConformance(() => new RedisStore(redis, { prefix: 'conformance', timeoutMs: PATIENCE_MS }), {
  describe,
  it,
  name: 'RedisStore on the clock of its server',
});
