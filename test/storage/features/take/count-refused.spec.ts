import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  LimiterService,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import { createTestingStore, TestClock } from '../../../../lib/testing/index.js';
import { clockStep, costOf, costShare, optionsOf, type RateOptions } from '../../../support/limits/arbitraries.js';
import {
  assertSideBySide,
  expectEqual,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../../../support/limits/property-runs.js';
import { ask, connectRedis, freshPrefix, ManualClock, storeKinds } from '../../../support/limits/stores.js';
import { PATIENCE } from '../../../support/redis/patience.mjs';

const RUNS = propertyRuns(60);
const KEY = 'user:1';

const steps = fc.array(fc.record({ clock: clockStep, cost: costShare, peek: fc.boolean() }), {
  minLength: 1,
  maxLength: 20,
});
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

describe.each(Object.entries(storeKinds))('a window that counts what it refuses, on %s', (_, make) => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  async function counts(options: RateOptions, history: Steps): Promise<void> {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const counting = new CompiledLimit(options, { location: 'test', name: 'counting', countsRefused: true });
    const plain = new CompiledLimit(options, { location: 'test', name: 'plain' });
    const isSliding = options.algo === 'sliding-window';
    try {
      for (const { clock: step, cost: share, peek } of history) {
        clock.advanceMs((isSliding ? Math.abs(step) : step) * plain.windowMs(clock.now() / 1000));
        const cost = costOf(share, plain.quota);
        const before = await ask(store, counting, { cost, peek: true });
        const { tried, limit: _name, ...decision } = await ask(store, counting, { cost, peek });
        const { limit: _other, ...other } = await ask(store, plain, { cost, peek });
        expectEqual(tried! - before.tried!, peek || cost > plain.quota ? 0 : cost);
        expectEqual(decision.remaining, Math.max(0, plain.quota - tried!));
        // A sliding window forgets what it did not let through later.
        if (!isSliding) expectEqual(decision.allowed && !other.allowed, false);
        if (!decision.allowed) continue;
        expectEqual(tried! <= plain.quota, true);
      }
    } finally {
      await store.close();
    }
  }

  /** A window that begins anew, of tries that all cost the same. */
  async function decidesAlike(options: RateOptions, history: Steps): Promise<void> {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const counting = new CompiledLimit(options, { location: 'test', name: 'counting', countsRefused: true });
    const plain = new CompiledLimit(options, { location: 'test', name: 'plain' });
    const cost = Math.min(plain.quota, costOf(history[0]!.cost, plain.quota));
    try {
      for (const { clock: step, peek } of history) {
        clock.advanceMs(Math.abs(step) * plain.windowMs(clock.now() / 1000));
        const { allowed, retryAfterMs } = await ask(store, counting, { cost, peek });
        const other = await ask(store, plain, { cost, peek });
        expectEqual([allowed, retryAfterMs], [other.allowed, other.retryAfterMs]);
      }
    } finally {
      await store.close();
    }
  }

  it.each(['fixed-window', 'calendar-window'] as const)(
    '%s decides on tries of one cost as if it did not count those',
    async (algo) => {
      const options = optionsOf[algo] as fc.Arbitrary<RateOptions>;
      await assertSideBySide(fc.asyncProperty(options, steps, decidesAlike), RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );

  it.each(['fixed-window', 'calendar-window', 'sliding-window'] as const)(
    '%s says how many were asked for, and allows no more than its rate',
    async (algo) => {
      const options = optionsOf[algo] as fc.Arbitrary<RateOptions>;
      await assertSideBySide(fc.asyncProperty(options, steps, counts), RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );
});

const opened: { close(): Promise<unknown> }[] = [];
afterEach(() => Promise.all(opened.splice(0).map((app) => app.close())));

async function serviceOf(options: RateLimitModuleOptions): Promise<LimiterService> {
  const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] }).compile();
  opened.push(app);
  await app.init();
  return app.get(LimiterService);
}

const places: Record<string, () => Partial<RateLimitModuleOptions>> = {
  'in process': () => ({ store: createTestingStore({ clock: new TestClock() }) }),
  'on Redis': () => ({ redis: process.env['TEST_REDIS_URL']!, prefix: freshPrefix(), timeout: PATIENCE }),
};

const otp = { algo: 'fixed-window', rate: 3, interval: '1h', countRefused: true } as const satisfies LimitDefinition;

describe.each(Object.entries(places))('countRefused, %s', (_, place) => {
  it('shows that 5 were made of 3 allowed', async () => {
    const limiters = await serviceOf({ ...place(), define: { otp } });
    const made = [];
    for (let times = 0; times < 5; times++) {
      const { allowed, tried, remaining, quota } = await limiters.for('otp').consume(KEY);
      made.push([allowed, tried, remaining, quota]);
    }
    expect(made).toEqual([
      [true, 1, 2, 3],
      [true, 2, 1, 3],
      [true, 3, 0, 3],
      [false, 4, 0, 3],
      [false, 5, 0, 3],
    ]);
    expect(await limiters.for('otp').peek(KEY)).toMatchObject({ allowed: false, tried: 5 });
    expect(await limiters.for('otp').consume(KEY, { upTo: 2 })).toMatchObject({ taken: 0, tried: 6 });
  });

  it('counts no try that another limit refuses, and says nothing without the option', async () => {
    const few = { algo: 'gcra', rate: 1, interval: '1h' } as const;
    const limiters = await serviceOf({ ...place(), define: { otp, few } });
    // oxlint-disable-next-line unicorn/consistent-function-scoping -- it has the limits of the test
    const both = () =>
      limiters.check([
        { limit: 'otp', key: KEY },
        { limit: 'few', key: KEY },
      ]);
    await both();
    const { decisions } = await both();
    expect(decisions[0]).toMatchObject({ allowed: true, tried: 1 });
    expect(decisions[1]!.tried).toBeUndefined();
  });
});

describe('countRefused', () => {
  it.each<[object, string]>([
    [{ algo: 'gcra', rate: 1, interval: '1s' }, "'countRefused'"],
    [{ algo: 'sliding-log', rate: 1, interval: '1s' }, "'countRefused'"],
    [
      { algo: 'fixed-window', rate: 1, interval: '1s', blockFor: '1h' },
      "options 'countRefused' and 'blockFor' exclude",
    ],
    [
      { algo: 'fixed-window', rate: 9, interval: '1s', reserveFor: { critical: 0.5 } },
      "'countRefused' and 'reserveFor'",
    ],
  ])('is refused at start-up: %p', async (options, message) => {
    const define = { wrong: { ...options, countRefused: true } as LimitDefinition };
    await expect(serviceOf({ define })).rejects.toThrow(message);
  });
});
