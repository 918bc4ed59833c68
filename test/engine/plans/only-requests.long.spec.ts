import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  type Limiter,
  LimiterService,
  MemoryStore,
  RateLimitModule,
  RedisStore,
  type Reservation,
  type Store,
} from '../../../lib/index.js';
import { connectRedis, freshPrefix, ManualClock } from '../../support/limits/stores.js';
import { moveLives, serverTime } from '../../support/redis/key-lives.js';

const month = { period: 'month', hold: '5m', usage: '365d' } as const;
const define = {
  budget: { algo: 'budget', limit: 100, rollover: 1, ...month },
  plan: { algo: 'calendar-window', rate: 100, rollover: 1, credits: true, retain: '365d', ...month, hold: '170d' },
  half: { algo: 'calendar-window', rate: 100, rollover: 0.5, credits: true, ...month, hold: '60d' },
  daily: { algo: 'fixed-window', rate: 22, interval: '1d', hold: '36h', usage: '365d' },
  released: { algo: 'fixed-window', rate: 22, interval: '1d', hold: '36h', onLapse: 'release', usage: '365d' },
} satisfies Record<string, LimitDefinition>;

/** Asks or corrects a counter by what is no request. */
type Way = (limiter: Limiter, held: Reservation, limiters: LimiterService) => Promise<unknown>;
type Ways = Record<string, Way>;

const reads: Ways = {
  nothing: async () => {},
  peek: (limiter) => limiter.peek('u'),
  usage: (limiter) => limiter.usage('u'),
  exportUsage: async (limiter) => {
    for await (const row of limiter.exportUsage()) void row;
  },
  explain: (limiter, _, limiters) => limiters.explain({ limit: limiter.name, key: 'u' }),
};
const corrections: Ways = {
  refund: (limiter) => limiter.refund('u', 1),
  'a refused check': (limiter) => limiter.consume('u', 1000),
  'block and unblock': async (limiter) => {
    await limiter.block('u', '1h');
    await limiter.consume('u');
    await limiter.unblock('u');
  },
  settle: (_, held) => held.settle(3),
  cancel: (_, held) => held.cancel(),
};
const ofWindows: Ways = { ...reads, history: (limiter) => limiter.history('u') };
const ofPlans: Ways = {
  ...ofWindows,
  ...corrections,
  credit: (limiter) => limiter.credit('u', 5),
  withdraw: (limiter) => limiter.withdraw('u', 5),
};

describe.each(['process', 'redis'])('what is no request, counted in %s', (where) => {
  let redis: Redis;
  let app: TestingModule;
  let store: Store;
  let limiters: LimiterService;
  let clock: ManualClock;
  let prefix: string;
  let began: number;

  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());
  afterEach(async () => {
    await app.close();
    await store.close?.();
  });

  async function start(date: string): Promise<void> {
    clock = new ManualClock();
    clock.set(date);
    prefix = freshPrefix();
    began = await serverTime(redis);
    store =
      where === 'redis'
        ? new RedisStore(redis, { clock, prefix, timeoutMs: 10_000 })
        : new MemoryStore({ clock: clock.now });
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ store, define })] }).compile();
    await app.init();
    limiters = app.get(LimiterService);
  }

  /** Time goes on, and keys expire. */
  async function until(date: string): Promise<void> {
    const ms = new Date(date).getTime() - clock.date.getTime();
    clock.set(date);
    const keys = where === 'redis' ? await redis.keys(`${prefix}:*`) : [];
    if (keys.length > 0) await moveLives(redis, keys, { ms, patienceMs: clock.slackMs, began });
  }

  it.each(Object.entries(ofWindows))('makes no window known after two without any: %s', async (_, way) => {
    await start('2026-01-10T00:00:00Z');
    const limiter = limiters.for('budget');
    const held = await limiter.reserve('u', { cost: 100 });
    await until('2026-03-05T00:00:00Z');
    await way(limiter, held, limiters);
    await until('2026-04-10T00:00:00Z');
    expect(await limiter.peek('u')).toMatchObject({ quota: 100, remaining: 100 });
  });

  it.each(Object.entries(ofPlans))('makes no key known again: %s', async (name, way) => {
    await start('2026-01-10T00:00:00Z');
    const limiter = limiters.for('plan');
    await limiter.consume('u', 50);
    const held = await limiter.reserve('u', { cost: 50 });
    await until('2026-05-05T00:00:00Z');
    await way(limiter, held, limiters);
    const credits = name === 'credit' ? 5 : 0;
    expect(await limiter.peek('u')).toMatchObject({ quota: 100 + credits, remaining: 100 + credits });
    await until('2026-06-05T00:00:00Z');
    expect(await limiter.peek('u')).toMatchObject({ quota: 100 + credits, remaining: 100 + credits });
  });

  it.each(Object.entries(ofPlans))('does not fix what rolls over: %s', async (name, way) => {
    await start('2026-01-10T00:00:00Z');
    const limiter = limiters.for('half');
    const held = await limiter.reserve('u', { cost: 1 });
    await until('2026-02-01T00:00:00Z');
    await way(limiter, held, limiters);
    await limiters.setRate('half', { rate: 10 }, { key: 'u' });
    const credits = name === 'credit' ? 5 : 0;
    // Half of the 9 that are left of the new rate, rounded down.
    expect(await limiter.peek('u')).toMatchObject({ quota: 14 + credits });
    await limiter.consume('u', 14);
    expect(await limiter.peek('u')).toMatchObject({ remaining: credits });
  });

  it.each(Object.entries({ ...reads, ...corrections }))('opens no fixed window: %s', async (_, way) => {
    await start('2026-10-01T00:00:00Z');
    const limiter = limiters.for('daily');
    const held = await limiter.reserve('u');
    await limiter.reserve('u');
    await until('2026-10-02T10:00:00Z');
    await way(limiter, held, limiters);
    await until('2026-10-02T11:00:00Z');
    expect(await limiter.consume('u', 22)).toMatchObject({ allowed: true });
    expect(await limiter.consume('u')).toMatchObject({ allowed: false, retryAfterMs: 86_400_000 });
  });

  it.each(Object.entries(reads))('opens no fixed window long after all holds have lapsed: %s', async (_, way) => {
    await start('2026-10-01T00:00:00Z');
    const limiter = limiters.for('released');
    const held = await limiter.reserve('u');
    await until('2026-10-18T00:00:00Z');
    await way(limiter, held, limiters);
    await until('2026-10-18T20:00:00Z');
    await limiter.consume('u', 22);
    expect(await limiter.consume('u')).toMatchObject({ allowed: false, retryAfterMs: 86_400_000 });
  });
});
