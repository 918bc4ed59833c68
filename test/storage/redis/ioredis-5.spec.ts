import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis-5';
import { type RedisClient, RedisStore } from '../../../lib/index.js';
import { algorithmNames } from '../../support/limits/arbitraries.js';
import { ask, compile, freshPrefix } from '../../support/limits/stores.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const examples = {
  'fixed-window': { algo: 'fixed-window', rate: 2, interval: '1h' },
  'calendar-window': { algo: 'calendar-window', rate: 2, period: 'year', retain: '1d' },
  'sliding-window': { algo: 'sliding-window', rate: 2, interval: '1h' },
  'sliding-log': { algo: 'sliding-log', rate: 2, interval: '1h' },
  'token-bucket': { algo: 'token-bucket', rate: 2, interval: '1h' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 2, interval: '1h', queue: 1 },
  gcra: { algo: 'gcra', rate: 2, interval: '1h' },
} as const;

describe('RedisStore on a connection of ioredis 5', () => {
  let redis: Redis;
  let store: RedisStore;
  let url: string;

  withOwnRedis((_, server) => (url = server.url));

  beforeAll(async () => {
    redis = new Redis(url, { lazyConnect: true });
    store = new RedisStore(redis as unknown as RedisClient, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    await store.open();
  });
  afterAll(async () => {
    await store.close();
    await redis.quit();
  });

  it.each(algorithmNames)('%s allows its quota and no more', async (algo) => {
    const limit = compile(examples[algo]);
    const outcomes = await Promise.all([1, 2, 3].map(() => ask(store, limit)));
    expect(outcomes.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(outcomes.map(({ remaining }) => remaining)).toEqual([1, 0, 0]);
  });

  it('knows the script no longer, and is given it again', async () => {
    await redis.script('FLUSH');
    await expect(ask(store, compile(examples.gcra, 'flushed'))).resolves.toMatchObject({ allowed: true });
  });
});
