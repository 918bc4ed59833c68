import { afterAll, beforeAll, describe } from '@jest/globals';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore } from '../../../lib/index.js';
import { type Client, openClient } from '../../support/redis/node-redis.js';
import { connectRedis, freshPrefix, storeKinds } from '../../support/limits/stores.js';
import { wholeContract } from './whole-contract.js';
import { fallingBack } from '../../support/limits/layers.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe('RedisStore on a client of node-redis', () => {
  let client: Client;
  beforeAll(async () => {
    client = await openClient();
  });
  afterAll(() => client.close());

  wholeContract((clock) => new RedisStore(client, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS }));
});

describe.each(Object.entries(storeKinds))('FallbackStore over %s', (_, make) => {
  wholeContract((clock) => fallingBack(make(clock, redis), new MemoryStore({ clock: clock.now })));
});
