import { afterEach, beforeAll, afterAll, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { adapters, HttpApp } from '../e2e/http-app.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';
import { patient } from '../support/redis/patience.mjs';

const hour = { algo: 'gcra', rate: 2, interval: '1h' } as const;
const define = {
  few: hour,
  stays: { algo: 'sliding-log', rate: 2, interval: '1h' },
  bucket: { algo: 'token-bucket', rate: 2, interval: '1h' },
  recorded: { algo: 'fixed-window', rate: 2, interval: '1h', usage: { keep: '2d' } },
  held: { algo: 'budget', limit: 2, period: 'year', hold: '1h' },
  slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
  compared: { ...hour, candidate: { rate: 1 } },
  blocking: { ...hour, blockFor: '1h' },
  team: hour,
  member: { ...hour, within: 'team' },
  lender: { algo: 'fixed-window', rate: 2, interval: '1h' },
  borrower: { algo: 'fixed-window', rate: 1, interval: '1h', ceiling: 2, within: 'lender' },
  ahead: { algo: 'gcra', rate: 100, interval: '1h', prefetch: { units: 10, ttl: '1s' } },
} satisfies Record<string, LimitDefinition>;

const KEY = 'user:1';
let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

describe.each(['in process', 'on Redis'])('a call that costs nothing, %s', (kind) => {
  async function start() {
    const prefix = freshPrefix();
    const options: RateLimitModuleOptions = kind === 'on Redis' ? { redis: process.env['TEST_REDIS_URL'], prefix } : {};
    const module = Test.createTestingModule({ imports: [RateLimitModule.forRoot(patient({ ...options, define }))] });
    const app = await module.compile();
    app.useLogger(false);
    await app.init();
    closing.push(() => app.close());
    const service = app.get(LimiterService);
    return { service, keys: () => redis.keys(`${prefix}:{*`) };
  }

  it.each(['few', 'stays', 'bucket', 'recorded', 'held', 'compared', 'blocking', 'ahead'])(
    'is allowed and charged nowhere: %s',
    async (name) => {
      const { service, keys } = await start();
      const limiter = service.for(name);
      const { quota } = await limiter.peek(KEY);
      expect(await limiter.consume(KEY, 0)).toMatchObject({ allowed: true, limit: name, remaining: quota, delayMs: 0 });
      expect(await limiter.consume(KEY, { cost: 0 })).toMatchObject({ allowed: true, remaining: quota });
      expect(await limiter.acquire(KEY, { cost: 0, timeout: 0 })).toMatchObject({ allowed: true, remaining: quota });
      expect(await service.check([{ limit: name, key: KEY, cost: 0 }])).toMatchObject({ allowed: true });
      expect(await keys()).toEqual([]);
    },
  );

  it('is allowed where all is used, and waits behind nobody', async () => {
    const { service } = await start();
    const few = service.for('stays');
    await few.consume(KEY, 2);
    const ended = new AbortController();
    const waiting = few.acquire(KEY, { signal: ended.signal }).catch(() => 'gave up');
    expect(await few.acquire(KEY, { cost: 0 })).toMatchObject({ allowed: true });
    expect(await few.consume(KEY, 0)).toMatchObject({ allowed: true, remaining: 0 });
    ended.abort();
    expect(await waiting).toBe('gave up');
  });

  it('takes part in a check that takes units elsewhere', async () => {
    const { service } = await start();
    const check = () =>
      service.check([
        { limit: 'few', key: KEY, cost: 0 },
        { limit: 'stays', key: KEY, cost: 2 },
        { limit: 'ahead', key: KEY, cost: 0 },
      ]);
    expect(await check()).toMatchObject({ allowed: true, decisions: [{ remaining: 2 }, { remaining: 0 }, {}] });
    expect(await check()).toMatchObject({ allowed: false, tightest: { limit: 'stays' } });
    await service.for('few').block(KEY, '1m');
    await service.for('stays').reset(KEY);
    expect(await check()).toMatchObject({ allowed: false, tightest: { limit: 'few' } });
    expect(await service.for('stays').peek(KEY)).toMatchObject({ remaining: 2 });
  });

  it('many at once share a call with others', async () => {
    const { service } = await start();
    const few = service.for('few');
    const costs = [0, 1, 0, 1, 0, 1, 0, ...Array<number>(20).fill(0)];
    const decisions = await Promise.all(costs.map((cost) => few.consume(KEY, cost)));
    const refused = decisions.flatMap(({ allowed }, index) => (allowed ? [] : [index]));
    expect(refused).toEqual([5]);
  });

  it('holds no slot, and its lease can be released', async () => {
    const { service } = await start();
    const slots = service.for('slots');
    const held = await slots.consume(KEY);
    const free = await slots.consume(KEY, 0);
    expect(free).toMatchObject({ allowed: true, remaining: 0 });
    await free.lease!.release();
    expect(await slots.hold(KEY, () => 'done', { cost: 0 })).toBe('done');
    expect(await slots.peek(KEY)).toMatchObject({ remaining: 0 });
    await held.lease!.release();
    expect(await slots.peek(KEY)).toMatchObject({ remaining: 1 });
  });

  it('reserves nothing, and is settled at what it cost after all', async () => {
    const { service, keys } = await start();
    for (const name of ['few', 'held']) {
      const limiter = service.for(name);
      const cancelled = await limiter.reserve(KEY, { cost: 0 });
      expect(cancelled).toMatchObject({ allowed: true, remaining: 2, delayMs: 0, id: undefined });
      await cancelled.cancel();
      expect(await keys()).toEqual([]);
      const settled = await limiter.reserve(KEY, { cost: 0 });
      await settled.settle(1);
      expect(await limiter.peek(KEY)).toMatchObject({ remaining: 1 });
      await limiter.reset(KEY);
    }
    const call = await service.reserve([
      { limit: 'few', key: KEY, cost: 0 },
      { limit: 'held', key: KEY, cost: 2 },
    ]);
    expect(call.allowed).toBe(true);
    await call.settle([0, 1]);
    expect(await service.for('held').peek(KEY)).toMatchObject({ remaining: 1 });
    expect(await service.for('few').peek(KEY)).toMatchObject({ remaining: 2 });
  });

  it('is recorded as no usage', async () => {
    const { service } = await start();
    const recorded = service.for('recorded');
    await recorded.consume(KEY, 0);
    expect(await recorded.usage(KEY)).toEqual({ total: 0, days: [] });
    for await (const each of recorded.exportUsage()) expect(each).toBeUndefined();
  });

  it.each(['member', 'borrower'])('costs nothing at any level: %s', async (name) => {
    const { service, keys } = await start();
    const limiter = service.for(name);
    const [parent] = name === 'member' ? ['team'] : ['lender'];
    const within = { [parent]: 'team:1' };
    expect(await limiter.consume(KEY, { cost: 0, within })).toMatchObject({ allowed: true });
    expect(await limiter.acquire(KEY, { cost: 0, within, timeout: 0 })).toMatchObject({ allowed: true });
    expect(await keys()).toEqual([]);
    while ((await limiter.consume(KEY, { within })).allowed);
    expect(await limiter.consume(KEY, { cost: 0, within })).toMatchObject({ allowed: true });
  });

  it('is explained as it is decided', async () => {
    const { service } = await start();
    await service.for('few').consume(KEY, 2);
    const told = await service.explain({ limit: 'few', key: KEY, cost: 0 });
    expect(told).toMatchObject({ outcome: { verdict: 'allowed' }, limits: [{ cost: 0 }] });
  });
});

/** What a request names, as a list in its query. */
const idsOf = (context: ExecutionContext) => {
  const { ids = '' } = context.switchToHttp().getRequest<{ query: { ids?: string } }>().query;
  return ids.split(',').filter((id) => id !== '').length;
};

@Controller()
class ThingsController {
  @Get('things')
  @RateLimit({ name: 'things', algo: 'fixed-window', rate: 2, interval: '1m', cost: idsOf })
  things() {}

  @Get('slots')
  @RateLimit({ name: 'slots', algo: 'concurrency', limit: 1, ttl: '1m', cost: idsOf })
  slots() {}

  @Get('queue')
  @RateLimit({ name: 'queue', algo: 'leaky-bucket', rate: 1, interval: '1h', cost: idsOf })
  queue() {}

  @Get('user')
  @RateLimit({ name: 'user', algo: 'fixed-window', rate: 2, interval: '1m', cost: idsOf, count: 'failed' })
  failed() {}
}

describe.each(adapters)('a request that costs nothing, over %s', (framework) => {
  it.each(['things', 'slots', 'queue', 'user'])('is answered, and counted nowhere: %s', async (path) => {
    const app = await HttpApp.start(framework, { controllers: [ThingsController] });
    closing.push(() => app.close());
    expect(await app.statuses(5, `/${path}`)).toEqual(Array(5).fill(200));
    expect(app.store.size).toBe(0);
  });

  it('tells what is left, and is answered where nothing is', async () => {
    const app = await HttpApp.start(framework, { controllers: [ThingsController] });
    closing.push(() => app.close());
    expect((await app.get('/things')).headers.get('ratelimit')).toBe('"things";r=2;t=0');
    expect((await app.get('/things?ids=1,2')).headers.get('ratelimit')).toBe('"things";r=0;t=60');
    expect((await app.get('/things')).status).toBe(200);
    expect((await app.get('/things?ids=3')).status).toBe(429);
  });
});
