import { afterAll, beforeAll, describe } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectRedis, storeKinds } from '../../support/limits/stores.js';
import { wholeContract } from './whole-contract.js';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe.each(Object.entries(storeKinds))('%s', (_, make) => {
  wholeContract((clock) => make(clock, redis));
});
