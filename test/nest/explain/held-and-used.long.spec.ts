import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { LimiterService, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
import { nodeRedis, openClient } from '../../support/redis/node-redis.js';
import { type RedisCluster, startCluster } from '../../support/redis/redis-servers.js';
import { connectCluster, freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const define = {
  slots: { algo: 'concurrency', limit: 5, ttl: '1m' },
  tokens: { algo: 'fixed-window', rate: 1000, interval: '1h', usage: '90d', hold: '5m' },
  brief: { algo: 'fixed-window', rate: 1000, interval: '1h', usage: '90d', hold: '1s', onLapse: 'release' },
} as const satisfies RateLimitModuleOptions['define'];

describe('an explanation of what a key holds and was charged', () => {
  const url = process.env['TEST_REDIS_URL']!;
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  /** Clients whose replies come in other forms, or whose keys are elsewhere. */
  const CLIENTS = {
    'ioredis 6': async () => new Redis(url),
    'ioredis 5': async () => new Redis5(url) as unknown as Redis,
    'ioredis with a keyPrefix': async () => new Redis(url, { keyPrefix: 'app:' }),
    'a Cluster of ioredis': () => connectCluster(cluster),
    'node-redis 6': () => openClient(nodeRedis['node-redis 6']),
    'node-redis 5': () => openClient(nodeRedis['node-redis 5']),
  };

  it.each(Object.entries(CLIENTS))('is the same through %s', async (_name, connect) => {
    const redis = await connect();
    const module = RateLimitModule.forRoot({ redis, prefix: freshPrefix(), timeout: PATIENCE, define });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    await app.init();
    const service = app.get(LimiterService);
    await service.for('slots').consume('acme', 2);
    await service.for('slots').consume('acme');
    await service.for('tokens').reserve('acme', { cost: 40 });
    await service.for('brief').consume('acme', 7);
    await service.for('brief').reserve('acme', { cost: 40 });
    const stateOf = async (limit: string) => (await service.explain({ limit, key: 'acme' })).limits[0]!.state;
    const lapses = { firstLapseMs: expect.any(Number), lastLapseMs: expect.any(Number) };
    expect(await stateOf('slots')).toMatchObject({ leases: { count: 2, units: 3, ...lapses } });
    expect(await stateOf('tokens')).toMatchObject({
      holds: { count: 1, units: 40, ...lapses },
      usage: { timezone: 'UTC', days: [{ units: 40 }] },
    });
    await pause(1100);
    expect(await stateOf('brief')).toMatchObject({ holds: { count: 0 }, usage: { days: [{ units: 7 }] } });
    await app.close();
    await redis.quit();
  });

  it.each(['release', 'charge'] as const)(
    'writes nothing to Redis, with reservations that lapsed by %s',
    async (onLapse) => {
      const redis = new Redis(url);
      const prefix = freshPrefix();
      const limit = { algo: 'fixed-window', rate: 1000, interval: '1h', usage: '90d', hold: '1s', onLapse } as const;
      const module = RateLimitModule.forRoot({ redis, prefix, timeout: PATIENCE, define: { limit } });
      const app = await Test.createTestingModule({ imports: [module] }).compile();
      await app.init();
      const service = app.get(LimiterService);
      await service.for('limit').consume('acme', 7);
      await service.for('limit').reserve('acme', { cost: 40 });
      await pause(1100);
      const stored = async () => {
        const keys = (await redis.keys(`${prefix}:{acme}*`)).toSorted();
        return Promise.all(keys.map(async (key) => [key, await redis.dumpBuffer(key)]));
      };
      const before = await stored();
      expect(before).toHaveLength(3);
      const { state } = (await service.explain({ limit: 'limit', key: 'acme' })).limits[0]!;
      expect(state).toMatchObject({
        holds: { count: 0, units: 0 },
        usage: { days: [{ units: onLapse === 'release' ? 7 : 47 }] },
      });
      expect(await stored()).toEqual(before);
      // The app's own reading takes off the same, once.
      const { total } = await service.for('limit').usage('acme');
      expect(total).toBe(onLapse === 'release' ? 7 : 47);
      expect((await service.explain({ limit: 'limit', key: 'acme' })).limits[0]!.state).toEqual(
        expect.objectContaining({ usage: state!.usage }),
      );
      await app.close();
      await redis.quit();
    },
  );
});
