import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { RateLimitTesting } from '../../../lib/testing/index.js';
import { takingAhead } from '../../support/limits/prefetching.js';
import { withOwnRedis } from '../../support/redis/own-redis.js';
import { startRedis, type RedisServer } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { appStore } from '../../support/redis/app-store.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const KEY = 'user:1';
const limit: LimitDefinition = {
  algo: 'fixed-window',
  rate: 1000,
  interval: '1h',
  prefetch: { units: 64, ttl: '10s' },
};

const inTestStore = (builder: TestingModuleBuilder) => RateLimitTesting.useStore(builder, new MemoryStore());

describe('a lease', () => {
  let server: RedisServer;
  let redis: Redis;
  const apps: TestingModule[] = [];

  withOwnRedis((client, started) => {
    [redis, server] = [client, started];
  });
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  async function start(prefix: string, definition = limit): Promise<LimiterService> {
    const module = RateLimitModule.forRoot({
      redis: server.url,
      prefix,
      timeout: PATIENCE,
      define: { limit: definition },
    });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    await app.init();
    apps.push(app);
    return app.get(LimiterService);
  }

  async function calls(): Promise<number> {
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
  }

  it('spares Redis most calls, and is given back when the app closes', async () => {
    const prefix = freshPrefix();
    const limiter = (await start(prefix)).for('limit');
    const before = await calls();
    const sources = [];
    for (let i = 0; i < 300; i++) sources.push((await limiter.consume(KEY)).source);
    expect((await calls()) - before).toBeLessThan(15);
    expect(new Set(sources)).toEqual(new Set(['prefetch']));
    expect(await limiter.peek(KEY)).toMatchObject({ remaining: 700 });
    await apps.pop()!.close();
    expect(await (await start(prefix)).for('limit').peek(KEY)).toMatchObject({ remaining: 700, source: 'redis' });
  });

  it('ends on every instance with a reset and with a block', async () => {
    const prefix = freshPrefix();
    const [one, other] = [await start(prefix), await start(prefix)].map((service) => service.for('limit'));
    for (const limiter of [one!, other!]) for (let i = 0; i < 40; i++) await limiter.consume(KEY);
    await until(async () => {
      const [, listeners] = (await redis.pubsub('NUMSUB', `${prefix}:given-back`)) as [string, number];
      return listeners === 2;
    });
    await one!.block(KEY, '1h');
    await until(async () => !(await other!.consume(KEY)).allowed);
    await one!.unblock(KEY);
    await until(async () => (await other!.consume(KEY)).allowed);
    await one!.reset(KEY);
    await until(async () => (await other!.peek(KEY)).remaining === 1000);
  });

  it('ends with a changed rate', async () => {
    const service = await start(freshPrefix());
    const limiter = service.for('limit');
    for (let i = 0; i < 40; i++) await limiter.consume(KEY);
    await service.setRate('limit', { rate: 50 });
    let allowed = 0;
    while ((await limiter.consume(KEY)).allowed) allowed++;
    // Those that are held from before are on their way back.
    expect(allowed).toBeLessThanOrEqual(10);
  });

  it.each(['local', 'deny'] as const)('has nobody wait longer than the deadline, with %s', async (onStoreError) => {
    const own = await startRedis();
    jest.useFakeTimers();
    const timeoutMs = 250;
    const store = await appStore(own.url, { timeoutMs });
    try {
      await store.open?.();
      const prefetched = new CompiledLimit(
        { algo: 'fixed-window', rate: 1000, interval: '1h' },
        { location: 'test', name: 'prefetched', onStoreError, features: takingAhead(64, 50_000) },
      );
      const check = () => store.check([{ entries: [{ limit: prefetched, identity: KEY, cost: 1 }] }]);
      for (let i = 0; i < 40; i++) await check();
      own.pause();
      await jest.advanceTimersByTimeAsync(120);
      // Those who come while others wait already have a deadline of their own.
      const waits = Array.from({ length: 40 }, async (_, index) => {
        await new Promise((resolve) => setTimeout(resolve, index * 5));
        const since = performance.now();
        const by = await check().then(
          ([decisions]) => decisions![0]!.source,
          (error: Error) => error.name,
        );
        return { by, ms: performance.now() - since };
      });
      for (let ms = 0; ms < 2 * timeoutMs; ms++) await jest.advanceTimersByTimeAsync(1);
      const answers = await Promise.all(waits);
      expect(new Set(answers.map(({ by }) => by))).toEqual(
        new Set([onStoreError === 'deny' ? 'RateLimitStoreError' : 'fallback']),
      );
      expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThanOrEqual(timeoutMs + 1);
    } finally {
      jest.useRealTimers();
      own.resume();
      await store.close();
      await own.stop();
    }
  });

  describe('is decided by stricter parameters only where units are prefetched', () => {
    const bucket = { algo: 'gcra', rate: 100, interval: '1s', prefetch: { units: 10, ttl: '300ms' } } as const;

    async function quotaOf(options: RateLimitModuleOptions, replace = (builder: TestingModuleBuilder) => builder) {
      const module = RateLimitModule.forRoot({ prefix: freshPrefix(), define: { bucket }, ...options });
      const app = await replace(Test.createTestingModule({ imports: [module] })).compile();
      await app.init();
      apps.push(app);
      const { quota, source } = await app.get(LimiterService).for('bucket').consume(KEY);
      return { quota, source };
    }

    it('on Redis', async () => {
      expect(await quotaOf({ redis: server.url, timeout: PATIENCE })).toEqual({ quota: 70, source: 'prefetch' });
    });

    it('not in process', async () => {
      expect(await quotaOf({})).toEqual({ quota: 100, source: 'memory' });
    });

    it('not in a store of the user', async () => {
      expect(await quotaOf({ store: new MemoryStore() })).toEqual({ quota: 100, source: 'memory' });
    });

    it('not in the store of a test', async () => {
      expect(await quotaOf({ redis: server.url }, inTestStore)).toEqual({ quota: 100, source: 'memory' });
    });

    it('not while Redis fails', async () => {
      const own = await startRedis();
      await own.kill();
      expect(await quotaOf({ redis: own.url })).toEqual({ quota: 100, source: 'fallback' });
      await apps.pop()!.close();
      await own.stop();
    });
  });

  it.each<[string, object, RegExp]>([
    ['no lease', { prefetch: 5 }, /prefetch: expected \{ units, ttl \} such as .*, received 5/],
    ['no units', { prefetch: { ttl: '1s' } }, /prefetch.units: missing/],
    ['no time', { prefetch: { units: 5 } }, /prefetch.ttl: missing/],
    [
      'units that are no number',
      { prefetch: { units: 0, ttl: '1s' } },
      /prefetch\.units: expected a whole number >= 1.*, received 0/,
    ],
    [
      'a time that is too long',
      { prefetch: { units: 5, ttl: '2m' } },
      /prefetch\.ttl: expected .* at most 1 minute, received '2m'/,
    ],
    [
      'an option more',
      { prefetch: { units: 5, ttl: '1s', ahead: 1 } },
      /unknown option 'ahead', expected one of units, ttl/,
    ],
    ['blockFor', { blockFor: '1s' }, /'prefetch' and 'blockFor' exclude each other/],
    ['an instance of its own', { scope: 'instance' }, /'prefetch' and scope: 'instance' exclude each other/],
    ['what is delayed', { algo: 'leaky-bucket' }, /option 'prefetch' is not for 'leaky-bucket': use it with .*gcra/],
    [
      'what is held',
      { algo: 'concurrency', rate: undefined, interval: undefined, limit: 1, ttl: '1m' },
      /not for 'concurrency'/,
    ],
    [
      'a burst that flows back in its time',
      { algo: 'gcra', rate: 10, interval: '1s', prefetch: { units: 5, ttl: '1s' } },
      /prefetch\.ttl: expected a time in which less .*, received 1000/,
    ],
    ['a refill all at once', { algo: 'token-bucket', refill: 'intervally' }, /no refill 'intervally'/],
  ])('is refused with %s', async (_, wrong, message) => {
    const definition = { ...limit, ...wrong } as LimitDefinition;
    const started = start(freshPrefix(), definition);
    await expect(started).rejects.toThrow(RateLimitConfigError);
    await expect(started).rejects.toThrow(message);
  });
});
