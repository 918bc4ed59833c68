import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import {
  SluiceThrottlerStorage,
  type SluiceThrottlerStorageOptions,
} from '../../../lib/integrations/throttler-storage/index.js';
import { ensureBuilt } from '../../support/processes/built.js';
import { runProcesses } from '../../support/processes/run-processes.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';
import {
  type RedisCluster,
  type RedisSentinel,
  startCluster,
  startSentinel,
} from '../../support/redis/redis-servers.js';

const WORKER = 'test/support/processes/throttler-worker.mjs';
const url = process.env['TEST_REDIS_URL']!;

/** Asks for several keys at once, and returns the hits of each that are allowed. */
async function allowedOf(
  storage: SluiceThrottlerStorage,
  keys: number,
  hits: number,
  limit: number,
): Promise<number[]> {
  return Promise.all(
    Array.from({ length: keys }, async (_, key) => {
      const asked = Array.from({ length: hits }, () =>
        storage.increment(`key-${key}`, 3_600_000, limit, 3_600_000, 'default'),
      );
      return (await Promise.all(asked)).filter(({ isBlocked }) => !isBlocked).length;
    }),
  );
}

/** What two storages that share their hits allow together. */
async function expectShared(redis: SluiceThrottlerStorageOptions['redis']): Promise<void> {
  const options = { redis, prefix: freshPrefix(), timeout: PATIENCE };
  const storages = [new SluiceThrottlerStorage(options), new SluiceThrottlerStorage(options)];
  try {
    const allowed = await Promise.all(storages.map((storage) => allowedOf(storage, 20, 10, 7)));
    expect(allowed[0]!.map((count, key) => count + allowed[1]![key]!)).toEqual(Array.from({ length: 20 }, () => 7));
  } finally {
    for (const storage of storages) await storage.close();
  }
}

describe('SluiceThrottlerStorage', () => {
  it('admits exactly the limit of 1,000 parallel requests to three processes', async () => {
    await ensureBuilt();
    const input = { redis: url, prefix: freshPrefix(), limit: 123 };
    const results = await runProcesses<{ allowed: number; refused: number }>(
      WORKER,
      [334, 333, 333].map((requests) => ({ ...input, requests })),
    );
    const sum = (of: (result: { allowed: number; refused: number }) => number) =>
      results.reduce((total, result) => total + of(result), 0);
    expect(sum(({ allowed }) => allowed)).toBe(123);
    expect(sum(({ refused }) => refused)).toBe(877);
  });

  it.each([
    ['a URL', url],
    ['options', { host: new URL(url).hostname, port: Number(new URL(url).port) }],
  ])('shares hits through %s', (_, redis) => expectShared(redis));

  it('shares hits through clients of the app, which stay open', async () => {
    const ioredis = new Redis(url);
    const nodeRedis = createClient({ url });
    await nodeRedis.connect();
    try {
      await expectShared(ioredis);
      await expectShared(nodeRedis);
      expect(await ioredis.ping()).toBe('PONG');
      expect(await nodeRedis.ping()).toBe('PONG');
    } finally {
      ioredis.disconnect();
      nodeRedis.destroy();
    }
  });

  it('refuses a client of node-redis that is not open', async () => {
    const storage = new SluiceThrottlerStorage({ redis: createClient({ url }) });
    await expect(storage.onModuleInit()).rejects.toThrow('SluiceThrottlerStorage.redis: expected an open client');
    await expect(storage.increment('key', 1000, 1, 1000, 'default')).rejects.toThrow('expected an open client');
    await storage.close();
  });

  describe('on several servers', () => {
    let cluster: RedisCluster;
    let sentinel: RedisSentinel;
    beforeAll(async () => {
      [cluster, sentinel] = await Promise.all([startCluster(), startSentinel()]);
    });
    afterAll(async () => {
      await Promise.all([cluster.stop(), sentinel.stop()]);
    });

    it('shares hits through a Cluster', () => expectShared({ nodes: cluster.nodes }));

    it('shares hits through Sentinels', () => expectShared({ sentinels: sentinel.sentinels, name: sentinel.name }));
  });
});
