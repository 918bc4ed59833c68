import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import type { Redis } from 'ioredis';
import {
  defineLimits,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitArgumentError,
  RedisStore,
} from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { HttpApp, startUp } from '../../e2e/http-app.js';
import { startCluster } from '../../support/redis/redis-servers.js';
import { ask, connectCluster, connectRedis, featuresOfOptions, freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const plan = {
  algo: 'calendar-window',
  rate: 2,
  period: 'month',
  key: 'global',
  credits: true,
} satisfies LimitDefinition;

@Controller()
class PlanController {
  @Get()
  @RateLimit('plan')
  run() {}
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const start = async () => {
  app = await HttpApp.start('express', {
    controllers: [PlanController],
    limits: {
      headers: ['draft-8', 'legacy'],
      define: defineLimits({
        plan,
        plain: { algo: 'calendar-window', rate: 2, period: 'month' },
        held: { algo: 'calendar-window', rate: 2, period: 'month', credits: true, hold: '1h' },
      }),
    },
  });
  return { app, limiter: app.nest.get(LimiterService) };
};

describe('a limit with credits', () => {
  it('lets requests pass beyond its window', async () => {
    const { app, limiter } = await start();
    const limit = limiter.for('plan');
    expect(await limit.credit('global', 1, { id: 'evt_1' })).toBe(1);
    expect(await limit.credit('global', 1, { id: 'evt_1' })).toBe(1);
    const first = await app.get('/');
    expect(first.headers.get('x-ratelimit-limit')).toBe('3');
    expect([(await app.get('/')).status, (await app.get('/')).status, (await app.get('/')).status]).toEqual([
      200, 200, 429,
    ]);
    expect(await limit.peek('global')).toMatchObject({ credits: 0, remaining: 0, quota: 3 });
  });

  it('wakes those who wait, and gives back what is left', async () => {
    const { limiter } = await start();
    const limit = limiter.for('plan');
    await limit.consume('k', 2);
    const waiting = limit.acquire('k');
    // It waits for the next window by then.
    await limit.peek('k');
    await limit.credit('k', 5);
    expect(await waiting).toMatchObject({ allowed: true, credits: 4 });
    expect(await limit.withdraw('k', 1)).toBe(3);
    expect(await limit.withdraw('k')).toBe(0);
    expect(await limit.withdraw('k')).toBe(0);
  });

  it('tells the credits with a reservation, too', async () => {
    const { limiter } = await start();
    const limit = limiter.for('held');
    await limit.credit('k', 5);
    const reservation = await limit.reserve('k', { cost: 4 });
    expect(reservation).toMatchObject({ allowed: true, quota: 7, remaining: 3, credits: 3 });
    await reservation.settle(3);
    expect(await limit.peek('k')).toMatchObject({ credits: 4 });
  });

  it('says what it wants', async () => {
    const { limiter } = await start();
    const limit = limiter.for('plan');
    for (const units of [0, -1, 1.5, NaN, '5' as never, 2 ** 52]) {
      await expect(limit.credit('k', units)).rejects.toThrow(RateLimitArgumentError);
      await expect(limit.withdraw('k', units)).rejects.toThrow('expected a whole number >= 1 and <= 2251799813685248');
    }
    await expect(limit.credit('', 1)).rejects.toThrow(RateLimitArgumentError);
    await expect(limit.credit('k', 1, { id: '' })).rejects.toThrow('expected a string that is not empty');
    // An id that is misread would let a payment count each time.
    await expect(limit.credit('k', 1, { id: undefined as never })).rejects.toThrow(
      'expected a string that is not empty, received undefined',
    );
    await expect(limit.credit('k', 1, { paymentId: 'payment-1' } as never)).rejects.toThrow(
      "unknown option 'paymentId', expected one of id",
    );
    for (const options of ['payment-1', null]) {
      await expect(limit.credit('k', 1, options as never)).rejects.toThrow(
        /^options of the credit: expected \{ id: 'payment-1' \} or nothing, received /,
      );
      await expect(limit.withdraw('k', 1, options as never)).rejects.toThrow(RateLimitArgumentError);
    }
    expect((await limit.peek('k')).credits).toBe(0);
    await expect(limiter.for('plain').credit('k', 1)).rejects.toThrow(
      "limit 'plain' takes no credits. Set the option 'credits'",
    );
    await expect(startUp({ define: { plan: { ...plan, candidate: { rate: 5 } } } })).rejects.toThrow(
      "options 'credits' and 'candidate' exclude each other",
    );
  });
});

describe('credits on Redis', () => {
  let redis: Redis[];
  beforeAll(async () => {
    redis = await Promise.all([connectRedis(), connectRedis(), connectRedis()]);
  });
  afterAll(async () => {
    await Promise.all(redis.map((each) => each.quit()));
  });

  it('are taken once by several instances at a time', async () => {
    const prefix = freshPrefix();
    const stores = redis.map((each) => new RedisStore(each, { prefix, timeoutMs: PATIENCE_MS }));
    const limit = new CompiledLimit(
      { algo: 'calendar-window', rate: 20, period: 'year', credits: true, rollover: 0.5 },
      { location: 'test', featuresOfOptions, name: 'plan' },
    );
    const identity = 'user:42';
    const credited = await Promise.all(
      stores.flatMap((store) =>
        [1, 2, 3].map((payment) => store.credit({ limit, identity, units: 10, id: `${payment}` })),
      ),
    );
    expect(Math.max(...credited)).toBe(30);
    const asked = stores.flatMap((store, index) =>
      Array.from({ length: 40 }, () => ask(store, limit, { identity, cost: 1 + index })),
    );
    const decisions = await Promise.all(asked);
    const taken = decisions.reduce((sum, { allowed }, at) => sum + (allowed ? 1 + Math.floor(at / 40) : 0), 0);
    expect(taken).toBe(50);
    expect(await ask(stores[0]!, limit, { identity, peek: true })).toMatchObject({ credits: 0, remaining: 0 });
    // A value of another type counts as none, and what is added replaces it.
    await redis[0]!.lpush(`${prefix}:{user:7}:${limit.lineage}:credits`, 'x');
    expect(await ask(stores[0]!, limit, { identity: 'user:7' })).toMatchObject({ allowed: true, credits: 0 });
    expect(await stores[1]!.credit({ limit, identity: 'user:7', units: 2 })).toBe(2);
    // Another process, later.
    const later = new RedisStore(redis[1]!, { prefix, timeoutMs: PATIENCE_MS });
    expect(await later.credit({ limit, identity, units: 10, id: '3' })).toBe(0);
    expect(await later.credit({ limit, identity, units: 10, id: '4' })).toBe(10);
  });
});

describe('credits on a Cluster', () => {
  it('lie in the slot of their counter, and so do the ids of payments', async () => {
    const cluster = await startCluster();
    const client = await connectCluster(cluster);
    const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ownsClient: true });
    try {
      await store.open();
      for (let user = 0; user < 20; user++) {
        const identity = `user:${user}`;
        const limit = new CompiledLimit(
          { algo: 'budget', limit: 2, period: 'year', anchor: '2026-01-31', credits: true },
          { location: 'test', featuresOfOptions, name: 'plan', generation: user % 3 },
        );
        const credit = { limit, identity, units: 3, id: `{user:0} ${user}` };
        expect([await store.credit(credit), await store.credit(credit)]).toEqual([3, 3]);
        expect(await ask(store, limit, { identity, cost: 5 })).toMatchObject({ allowed: true, credits: 0 });
      }
    } finally {
      await store.close();
      await cluster.stop();
    }
  });
});
