import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import type { RedisServer } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const KEY = 'user:1';
const limit: LimitDefinition = { algo: 'fixed-window', rate: 2, interval: '1h' };

describe('refusals that are remembered', () => {
  let server: RedisServer;
  let redis: Redis;
  const apps: TestingModule[] = [];

  withOwnRedis((client, started) => {
    [redis, server] = [client, started];
  });
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  /** An instance of the app that hears the others. */
  async function start(options: RateLimitModuleOptions): Promise<LimiterService> {
    const listening = await listeners(options.prefix!);
    const module = RateLimitModule.forRoot({ redis: server.url, timeout: PATIENCE, define: { limit }, ...options });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    await app.init();
    apps.push(app);
    if (options.refusalCache !== false) await until(async () => (await listeners(options.prefix!)) > listening);
    return app.get(LimiterService);
  }

  async function listeners(prefix: string): Promise<number> {
    const [, count] = (await redis.pubsub('NUMSUB', `${prefix}:given-back`)) as [string, number];
    return count;
  }

  async function calls(): Promise<number> {
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
  }

  it('cost no call, and tell the wait that is left', async () => {
    const limiter = (await start({ prefix: freshPrefix() })).for('limit');
    await limiter.consume(KEY, 2);
    const since = performance.now();
    const asked = await limiter.consume(KEY);
    expect(asked).toMatchObject({ allowed: false, source: 'redis' });
    const before = await calls();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const remembered = [];
    for (let i = 0; i < 1000; i++) remembered.push(await limiter.consume(KEY));
    const passed = performance.now() - since;
    expect(await calls()).toBe(before);
    for (const { source, allowed, retryAfterMs, resetAfterMs } of remembered) {
      expect([source, allowed]).toEqual(['cache', false]);
      expect(retryAfterMs).toBeLessThanOrEqual(asked.retryAfterMs - 20);
      expect(retryAfterMs).toBeGreaterThan(asked.retryAfterMs - passed - 2);
      expect(resetAfterMs).toBe(retryAfterMs);
    }
    // Another key, another cost, a look: none of these was refused.
    expect(await limiter.consume('user:2')).toMatchObject({ allowed: true, source: 'redis' });
    expect(await limiter.peek(KEY)).toMatchObject({ allowed: false, source: 'redis' });
  });

  it('of one priority do not refuse another', async () => {
    const kept: LimitDefinition = { ...limit, rate: 4, reserveFor: { critical: 0.5 } };
    const limiter = (await start({ prefix: freshPrefix(), define: { limit: kept } })).for('limit');
    await limiter.consume(KEY, 2);
    for (const source of ['redis', 'cache']) {
      expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, quota: 2, source });
    }
    for (const remaining of [1, 0]) {
      expect(await limiter.consume(KEY, { priority: 'critical' })).toMatchObject({ allowed: true, remaining });
      expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, quota: 2, source: 'cache' });
    }
    for (const source of ['redis', 'cache']) {
      expect(await limiter.consume(KEY, { priority: 'critical' })).toMatchObject({ allowed: false, quota: 4, source });
    }
  });

  it('are none of a cost that never fits where that begins a block each time', async () => {
    const blocking: LimitDefinition = { ...limit, blockFor: ['1h', '2h'] };
    const limiter = (await start({ prefix: freshPrefix(), define: { limit: blocking } })).for('limit');
    for (let i = 0; i < 2; i++) {
      expect(await limiter.consume(KEY, 3)).toMatchObject({ allowed: false, source: 'redis', offences: 1 });
    }
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, source: 'redis', offences: 1 });
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, source: 'cache', offences: 1 });
  });

  it('end when their wait is over', async () => {
    const limiter = (await start({ prefix: freshPrefix() })).for('limit');
    await limiter.consume(KEY, 2);
    const { retryAfterMs } = await limiter.consume(KEY);
    expect((await limiter.consume(KEY)).source).toBe('cache');
    const now = performance.now.bind(performance);
    const later = jest.spyOn(performance, 'now').mockImplementation(() => now() + retryAfterMs + 1);
    // Of our clock, that is: for the server no time has passed.
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, source: 'redis' });
    later.mockRestore();
  });

  it.each<[string, (service: LimiterService) => Promise<unknown>]>([
    ['a reset', (service) => service.for('limit').reset(KEY)],
    ['a refund', (service) => service.for('limit').refund(KEY, 1)],
    ['a changed rate', (service) => service.setRate('limit', { rate: 10 })],
  ])('end with %s, here and on another instance', async (_, free) => {
    const prefix = freshPrefix();
    const [one, other] = [await start({ prefix }), await start({ prefix })];
    for (const freeing of [one, other]) {
      await one.clearRate('limit');
      await one.for('limit').reset(KEY);
      await one.for('limit').consume(KEY, 2);
      await until(async () => {
        const [here, there] = [await one.for('limit').consume(KEY), await other.for('limit').consume(KEY)];
        return here.source === 'cache' && there.source === 'cache';
      });
      await free(freeing);
      expect((await freeing.for('limit').peek(KEY)).allowed).toBe(true);
      const told = freeing === one ? other : one;
      await until(async () => (await told.for('limit').consume(KEY)).allowed);
    }
  });

  it('end with an unblock', async () => {
    const prefix = freshPrefix();
    const [one, other] = [await start({ prefix }), await start({ prefix })];
    await one.for('limit').block(KEY, '1h');
    await until(async () => (await one.for('limit').consume(KEY)).source === 'cache');
    await other.for('limit').unblock(KEY);
    await until(async () => (await one.for('limit').consume(KEY)).allowed);
  });

  it('are not, while the others cannot be heard', async () => {
    const limiter = (await start({ prefix: freshPrefix() })).for('limit');
    await limiter.consume(KEY, 2);
    await limiter.consume(KEY);
    expect((await limiter.consume(KEY)).source).toBe('cache');
    await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await until(async () => (await limiter.consume(KEY)).source === 'redis');
    await until(async () => (await limiter.consume(KEY)).source === 'cache');
  });

  it('are not, of limits whose units come back otherwise', async () => {
    const service = await start({ prefix: freshPrefix() });
    for (const more of [{ count: 'failed' as const }, { cost: 1 }]) {
      const limiter = service.for({ ...limit, ...more, name: JSON.stringify(Object.keys(more)) });
      await limiter.consume(KEY, 2);
      for (let i = 0; i < 3; i++) expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, source: 'redis' });
    }
    const held = service.for({ algo: 'concurrency', limit: 1, ttl: '1m' });
    await held.consume(KEY);
    for (let i = 0; i < 3; i++) expect((await held.consume(KEY)).source).toBe('redis');
  });

  it('are not, of a limit whose blocks are prolonged by tries', async () => {
    const struck = { ...limit, blockFor: '1h', strike: true } as const;
    const limiter = (await start({ prefix: freshPrefix(), define: { struck } })).for('struck');
    await limiter.consume(KEY, 2);
    for (let times = 0; times < 3; times++) {
      expect(await limiter.consume(KEY)).toMatchObject({ source: 'redis', retryAfterMs: 3_600_000 });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });

  it('are not, of another check of the same key', async () => {
    const service = await start({ prefix: freshPrefix() });
    const other = service.for({ ...limit, name: 'other' });
    const both = [service.for('limit'), other].map((each) => ({ limit: each, key: KEY }));
    await service.for('limit').consume(KEY, 2);
    for (const source of ['redis', 'cache', 'cache']) {
      expect(await service.check(both)).toMatchObject({ allowed: false, decisions: [{ source }, { source }] });
    }
    expect(await other.consume(KEY)).toMatchObject({ allowed: true, source: 'redis' });
  });

  it('can be switched off', async () => {
    const limiter = (await start({ prefix: freshPrefix(), refusalCache: false })).for('limit');
    await limiter.consume(KEY, 2);
    for (let i = 0; i < 3; i++) expect((await limiter.consume(KEY)).source).toBe('redis');
    const wrong = { prefix: freshPrefix(), refusalCache: 'no' as never };
    await expect(start(wrong)).rejects.toThrow(RateLimitConfigError);
  });
});
