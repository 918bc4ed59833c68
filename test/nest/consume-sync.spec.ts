import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  RateLimitArgumentError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { createTestingStore, RateLimitTesting, TestClock } from '../../lib/testing/index.js';
import { freshPrefix } from '../support/limits/stores.js';
import { PATIENCE } from '../support/redis/patience.mjs';

const apps: TestingModule[] = [];
afterAll(() => Promise.all(apps.map((app) => app.close())));

async function serviceOf(
  options: RateLimitModuleOptions,
  change = (builder: ReturnType<typeof Test.createTestingModule>) => builder,
) {
  const app = await change(Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)] })).compile();
  apps.push(app);
  await app.init();
  return app.get(LimiterService);
}

const limits: Record<string, LimitDefinition> = {
  gcra: { algo: 'gcra', rate: 3, interval: '1m' },
  'token-bucket': { algo: 'token-bucket', rate: 3, interval: '1m' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 1, interval: '1s', queue: 2 },
  'fixed-window': { algo: 'fixed-window', rate: 3, interval: '1m', blockFor: '5m' },
  'sliding-window': { algo: 'sliding-window', rate: 3, interval: '1m' },
  'sliding-log': { algo: 'sliding-log', rate: 3, interval: '1m' },
  'calendar-window': { algo: 'calendar-window', rate: 3, period: 'hour' },
  shadow: { algo: 'gcra', rate: 1, interval: '1m', mode: 'shadow' },
  candidate: { algo: 'gcra', rate: 3, interval: '1m', candidate: { algo: 'gcra', rate: 1, interval: '1m' } },
  usage: { algo: 'fixed-window', rate: 3, interval: '1m', usage: { keep: '7d' } },
  org: { algo: 'gcra', rate: 4, interval: '1m' },
  user: { algo: 'gcra', rate: 3, interval: '1m', within: 'org' },
};

describe('consumeSync', () => {
  const clock = new TestClock();
  let promised: LimiterService;
  let atOnce: LimiterService;
  beforeAll(async () => {
    promised = await serviceOf({ store: createTestingStore({ clock }), define: limits });
    atOnce = await serviceOf({ store: createTestingStore({ clock }), define: limits });
  });

  it.each(Object.keys(limits))('decides as consume does: %s', async (name) => {
    for (const [cost, ms] of [
      [1, 0],
      [2, 10],
      [1, 20_000],
      [9, 0],
      [0, 0],
      [1, 600_000],
      [3, 1],
      [1, 0],
    ] as const) {
      clock.advance(ms);
      const given = name === 'user' ? { cost, within: { org: 'o' } } : cost;
      expect(atOnce.for(name).consumeSync('key', given)).toEqual(await promised.for(name).consume('key', given));
    }
  });

  it('gives a lease that frees its units', async () => {
    const slots = atOnce.for({ algo: 'concurrency', limit: 1, ttl: '1m' });
    const { lease } = slots.consumeSync('key');
    expect(slots.consumeSync('key')).toMatchObject({ allowed: false });
    await lease!.release();
    expect(slots.consumeSync('key')).toMatchObject({ allowed: true });
  });

  it('heeds lists, and limits that are switched off at any level', async () => {
    const service = await serviceOf({
      define: limits,
      policy: { source: () => ({ limits: { org: { mode: 'off' } } }) },
      lists: { deny: [{ identity: 'banned' }], allow: [{ identity: 'vip' }] },
    });
    const decide = (key: string) => service.for('gcra').consumeSync(key, 4);
    expect([decide('banned'), decide('vip'), decide('other')]).toMatchObject([
      { allowed: false, source: 'list' },
      { allowed: true, source: 'list' },
      { allowed: false, source: 'memory' },
    ]);
    const levels = () => service.for('user').consumeSync('u', { within: { org: 'o' }, cost: 3 });
    expect(levels()).toMatchObject({ allowed: true, levels: [{ remaining: 0 }, { limit: 'org', remaining: 4 }] });
    expect(levels()).toMatchObject({ allowed: false });
  });

  it('throws what consume rejects with', async () => {
    for (const [key, cost] of [
      ['', 1],
      ['key', -1],
      ['key', { within: { org: 'o' } }],
    ] as const) {
      const error = await promised
        .for('gcra')
        .consume(key, cost)
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(RateLimitArgumentError);
      expect(() => atOnce.for('gcra').consumeSync(key, cost)).toThrow(error);
    }
  });

  it('works where tests let everything pass', async () => {
    const service = await serviceOf({ define: limits }, (builder) => RateLimitTesting.disable(builder));
    expect(service.for('gcra').consumeSync('key', 3)).toMatchObject({ allowed: true });
  });

  it('is an error for a limit on Redis, before anything is charged; not for one of the instance', async () => {
    const service = await serviceOf({
      redis: process.env['TEST_REDIS_URL']!,
      prefix: freshPrefix(),
      timeout: PATIENCE,
      define: limits,
    });
    const message =
      "limit 'gcra' is not counted in this process, so consumeSync cannot decide it. Call consume, or give the limit scope: 'instance'";
    expect(() => service.for('gcra').consumeSync('key')).toThrow(new RateLimitArgumentError(message));
    expect(await service.for('gcra').peek('key')).toMatchObject({ remaining: 3 });
    // Units that were taken ahead decide at once, too, but not always.
    const ahead = service.for({
      name: 'ahead',
      algo: 'gcra',
      rate: 100,
      interval: '1m',
      prefetch: { units: 10, ttl: '10s' },
    });
    for (let i = 0; i < 20; i++) await ahead.consume('key');
    expect(() => ahead.consumeSync('key')).toThrow(/consumeSync cannot decide it/);
    const own = service.for({ algo: 'gcra', rate: 2, interval: '1m', scope: 'instance' });
    expect([1, 2, 3].map(() => own.consumeSync('key').allowed)).toEqual([true, true, false]);
  });
});
