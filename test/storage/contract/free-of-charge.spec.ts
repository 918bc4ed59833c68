import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { AlgorithmOptions, Store } from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import {
  comparable,
  connectRedis,
  featuresOfOptions,
  freshPrefix,
  ManualClock,
  storeKinds,
} from '../../support/limits/stores.js';

const algorithms: Record<string, AlgorithmOptions> = {
  gcra: { algo: 'gcra', rate: 2, interval: '1m' },
  'token-bucket': { algo: 'token-bucket', rate: 2, interval: '1m' },
  'fixed-window': { algo: 'fixed-window', rate: 2, interval: '1m' },
  'sliding-window': { algo: 'sliding-window', rate: 2, interval: '1m' },
  'sliding-log': { algo: 'sliding-log', rate: 2, interval: '1m' },
  'calendar-window': { algo: 'calendar-window', rate: 2, period: 'year' },
  budget: { algo: 'budget', limit: 2, period: 'year' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 1, interval: '1m', queue: 1 },
  concurrency: { algo: 'concurrency', limit: 2, ttl: '1m' },
};

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

const identity = 'user:1';

describe.each(Object.keys(storeKinds))('what costs nothing, %s', (kind) => {
  const prefix = freshPrefix();
  const clock = new ManualClock();
  let store: Store;
  beforeAll(() => {
    store = storeKinds[kind]!(clock, redis, prefix);
  });
  afterAll(() => store.close());

  let limits = 0;
  const limitOf = (options: AlgorithmOptions, more: Partial<LimitSettings> = {}) =>
    new CompiledLimit(options, { location: 'test', featuresOfOptions, name: `limit-${++limits}`, ...more });
  const ask = async (limit: CompiledLimit, cost: number, more: object = {}) =>
    (await store.check([{ entries: [{ limit, identity, cost }], ...more }]))[0]![0]!;
  const keys = async () => (await redis.keys(`${prefix}:*`)).toSorted();

  describe.each(Object.entries(algorithms))('%s', (_, options) => {
    it.each<[string, object]>([
      ['a check', {}],
      ['one that may be given back', { refundable: true }],
      ['one that holds', { hold: true, refundable: true }],
    ])('%s is decided as a look, and leaves no trace', async (_name, how) => {
      const limit = limitOf(options);
      const before = await keys();
      const [free, looked] = [await ask(limit, 0, how), await ask(limit, 0, { peek: true })];
      delete free.chargedAt;
      expect(comparable([[free]])).toEqual(comparable([[looked]]));
      expect(free).toMatchObject({ allowed: true, remaining: limit.quota, delayMs: 0 });
      expect(free.ticket).toBeUndefined();
      expect(await keys()).toEqual(before);
    });

    it('fits where nothing else does, and changes nothing', async () => {
      const limit = limitOf(options);
      while ((await ask(limit, 1)).allowed);
      const before = await ask(limit, 1, { peek: true });
      expect(await ask(limit, 0)).toMatchObject({ allowed: true, retryAfterMs: 0, delayMs: 0 });
      expect(await ask(limit, 1, { peek: true })).toEqual(before);
    });

    it('is refused while its key is blocked, and begins no block', async () => {
      const limit = limitOf(options, options.algo === 'budget' ? {} : { blockFor: 60_000_000 });
      await ask(limit, limit.quota);
      expect((await ask(limit, 0)).allowed).toBe(true);
      expect(await store.blockedFor!({ limit, identity })).toBe(0);
      await store.block({ limit, identity }, 30_000);
      expect(await ask(limit, 0)).toMatchObject({ allowed: false, retryAfterMs: 30_000 });
    });

    it('is one of a check that takes units elsewhere', async () => {
      const [free, other] = [limitOf(options), limitOf(algorithms['gcra']!)];
      const entries = [
        { limit: free, identity, cost: 0 },
        { limit: other, identity, cost: 2 },
      ];
      const [first, second] = await store.check([{ entries }, { entries }]);
      expect(first!.map(({ allowed }) => allowed)).toEqual([true, true]);
      expect(second!.map(({ allowed }) => allowed)).toEqual([true, false]);
      expect(await ask(free, free.quota, { peek: true })).toMatchObject({ allowed: true });
      await store.reset([{ limit: other, identity }]);
      await store.block({ limit: free, identity }, 30_000);
      expect((await store.check([{ entries }]))[0]!.map(({ allowed }) => allowed)).toEqual([false, true]);
      expect(await ask(other, 2, { peek: true })).toMatchObject({ allowed: true });
    });

    it('reserves nothing', async () => {
      const limit = limitOf(options);
      while ((await ask(limit, 1)).allowed);
      const before = await ask(limit, 1, { peek: true });
      const reserved = await store.reserve({ limit, identity, cost: 0, maxWaitMs: 60_000 });
      expect(reserved).toMatchObject({ allowed: true, delayMs: 0 });
      expect(await ask(limit, 1, { peek: true })).toEqual(before);
    });
  });

  it('waits until a debt is paid off', async () => {
    const limit = limitOf(algorithms['token-bucket']!);
    await store.penalize({ limit, identity, units: 3 });
    expect(await ask(limit, 0)).toMatchObject({ allowed: false, retryAfterMs: 30_000 });
    expect(await store.reserve({ limit, identity, cost: 0, maxWaitMs: 60_000 })).toMatchObject({ allowed: false });
    clock.advanceMs(30_000);
    expect((await ask(limit, 0)).allowed).toBe(true);
  });
});
