import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import { RateLimit, RateLimitModule, type RedisConnection } from '../../lib/index.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import { PATIENCE } from '../support/redis/patience.mjs';

@Controller()
class ReportsController {
  @Get()
  @RateLimit(
    { name: 'route', algo: 'gcra', rate: 2, interval: '1h' },
    { name: 'secret', algo: 'sliding-log', rate: 9, interval: '1h', key: 'header:x-api-key' },
  )
  list() {}
}

describe('an app on Redis', () => {
  let redis: Redis;

  beforeAll(async () => {
    redis = await connectRedis();
  });

  afterAll(async () => {
    await redis.quit();
  });

  const url = process.env['TEST_REDIS_URL'] as string;
  it.each<[string, () => RedisConnection]>([
    ['a URL', () => url],
    ['a connection', () => redis],
  ])('counts there, given %s', async (_, connection) => {
    const prefix = freshPrefix();
    const start = async () => {
      const testing = await Test.createTestingModule({
        imports: [RateLimitModule.forRoot({ redis: connection(), prefix, timeout: PATIENCE })],
        controllers: [ReportsController],
      }).compile();
      const app = testing.createNestApplication();
      await app.listen(0, '127.0.0.1');
      return { app, address: await app.getUrl() };
    };
    const [one, two] = [await start(), await start()];
    const headers = { 'x-api-key': 'top-secret', connection: 'close' };
    const statuses: number[] = [];
    for (const { address } of [one, two, one]) statuses.push((await fetch(address, { headers })).status);
    expect(statuses).toEqual([200, 200, 429]);
    const keys = await redis.keys(`${prefix}:*`);
    expect(keys.length).toBeGreaterThanOrEqual(2);
    expect(keys.join('\n')).toContain(`${prefix}:{ip:127.0.0.1}:`);
    expect(keys.join('\n')).not.toContain('top-secret');
    for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0);
    await one.app.close();
    await two.app.close();
    expect(redis.status).toBe('ready');
  });
});
