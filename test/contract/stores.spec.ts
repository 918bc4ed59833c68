import { afterAll, beforeAll, describe } from '@jest/globals';
import type { Redis } from 'ioredis';
import { FallbackStore } from '../../lib/stores/fallback.store.js';
import { MemoryStore } from '../../lib/stores/memory.store.js';
import { connectRedis, storeKinds } from '../support/stores.js';
import { storeContract } from './store-contract.js';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe.each(Object.entries(storeKinds))('%s', (_, make) => {
  storeContract((clock) => make(clock, redis));
});

describe.each(Object.entries(storeKinds))('FallbackStore over %s', (_, make) => {
  storeContract((clock) => new FallbackStore(make(clock, redis), new MemoryStore({ clock: clock.now })));
});
