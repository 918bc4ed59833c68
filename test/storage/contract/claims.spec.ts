import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { MemoryStore, RedisStore, type Store } from '../../../lib/index.js';
import { CompiledLimit, type StoreDecision } from '../../../lib/testing/store/index.js';
import { clockStep, costOf, costShare, optionsOf } from '../../support/limits/arbitraries.js';
import { assertSideBySide, expectEqual, propertyRuns } from '../../support/limits/property-runs.js';
import {
  comparable,
  compile,
  connectRedis,
  freshPrefix,
  ManualClock,
  storeKinds,
} from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';

const KEEP_MS = 60_000;
const identity = 'shop:1';
const paced = compile({ algo: 'gcra', rate: 1, interval: '1s', burst: 1 }, 'paced');

let redis: Redis;

beforeAll(async () => {
  redis = await connectRedis();
});

afterAll(async () => {
  await redis.quit();
});

describe.each(Object.keys(storeKinds))('claims of %s', (kind) => {
  let clock: ManualClock;
  let store: Store;
  let prefix: string;

  beforeEach(() => {
    clock = new ManualClock();
    prefix = freshPrefix();
    store = storeKinds[kind]!(clock, redis, prefix);
  });

  const claim = (id: string, { limit = paced, cost = 1, looks = false, maxWaitMs = 1e9 } = {}) =>
    store.reserve({ limit, identity, cost, maxWaitMs, claim: { id, keepMs: KEEP_MS, looks } });
  const end = (id: string, isSpent: boolean, limit = paced) =>
    store.refund([{ limit, identity, units: 1, claim: { id, isSpent } }]);

  it('of starts are apart from those of reservations', async () => {
    const start = (id: string, maxWaitMs: number) =>
      store.reserve({ limit: paced, identity, cost: 1, maxWaitMs, ofStarts: true, claim: { id, keepMs: KEEP_MS } });
    expect(await claim('a')).toMatchObject({ allowed: true, delayMs: 0 });
    expect(await start('a', 0)).toMatchObject({ allowed: true, delayMs: 0 });
    expect(await start('b', 999)).toMatchObject({ allowed: false, retryAfterMs: 1000 });
    expect(await start('a', 0)).toMatchObject({ allowed: true, wasClaimed: true });
    const ends = { limit: paced, identity, units: 1, ofStarts: true } as const;
    await store.refund([{ ...ends, claim: { id: 'a', isSpent: true } }, ends]);
    expect(await start('b', 0)).toMatchObject({ allowed: true, delayMs: 0 });
    expect(await store.reserve({ limit: paced, identity, cost: 1, maxWaitMs: 0 })).toMatchObject({ allowed: false });
  });
  const delays = async (...ids: string[]) => {
    const waits = [];
    for (const id of ids) waits.push((await claim(id)).delayMs);
    return waits;
  };

  it('take units once, however often they are asked for', async () => {
    expect(await delays('a', 'b', 'b', 'c', 'a', 'b')).toEqual([0, 1000, 1000, 2000, 0, 1000]);
    clock.advanceMs(400);
    expect(await delays('b', 'c', 'd')).toEqual([600, 1600, 2600]);
    clock.advanceMs(10_000);
    expect(await delays('b', 'd', 'e', 'f')).toEqual([0, 0, 0, 1000]);
  });

  it('tell what was claimed before', async () => {
    expect((await claim('a')).wasClaimed).toBeUndefined();
    expect(await claim('a')).toMatchObject({ allowed: true, wasClaimed: true, delayMs: 0, limit: 'paced', quota: 1 });
    await claim('b');
    expect(await claim('b')).toMatchObject({ allowed: true, wasClaimed: true, delayMs: 1000, resetAfterMs: 1000 });
  });

  it('can be looked for, which takes nothing', async () => {
    expect(await claim('a', { looks: true })).toMatchObject({ allowed: true, delayMs: 0 });
    expect(await delays('b', 'c')).toEqual([0, 1000]);
    expect(await claim('d', { looks: true })).toMatchObject({ allowed: false, retryAfterMs: 2000 });
    expect(await claim('c', { looks: true })).toMatchObject({ allowed: true, delayMs: 1000, wasClaimed: true });
    expect(await delays('d')).toEqual([2000]);
  });

  it('are not made by what is refused', async () => {
    await claim('a');
    expect(await claim('b', { maxWaitMs: 500 })).toMatchObject({ allowed: false, retryAfterMs: 1000 });
    expect(await claim('b', { cost: 2 })).toMatchObject({ allowed: false, retryAfterMs: Infinity });
    expect(await delays('c', 'b')).toEqual([1000, 2000]);
  });

  it('give back what could not be used yet', async () => {
    await delays('a', 'b', 'c');
    await end('c', false);
    await end('c', false);
    expect(await delays('d', 'e')).toEqual([2000, 3000]);
  });

  it('give nothing back that could be used when it was asked for', async () => {
    await delays('a', 'b');
    await end('a', false);
    expect(await delays('c')).toEqual([2000]);
    clock.advanceMs(1000);
    await delays('b');
    await end('b', false);
    expect(await delays('d')).toEqual([2000]);
  });

  it('give nothing back that is spent, and are forgotten', async () => {
    await delays('a', 'b');
    await end('b', true);
    expect(await delays('b')).toEqual([2000]);
  });

  it('are of their counter and limit', async () => {
    const other = compile({ algo: 'token-bucket', rate: 1, interval: '3s', burst: 1 }, 'other');
    await delays('a', 'b');
    expect((await claim('b', { limit: other })).delayMs).toBe(0);
    const elsewhere = {
      limit: paced,
      identity: 'shop:2',
      cost: 1,
      maxWaitMs: 1e9,
      claim: { id: 'b', keepMs: KEEP_MS },
    };
    expect((await store.reserve(elsewhere)).delayMs).toBe(0);
  });

  it('hold for departure slots of a queue', async () => {
    const queue = compile({ algo: 'leaky-bucket', rate: 1, interval: '1s', queue: 2 }, 'queue');
    const ask = async (id: string) => claim(id, { limit: queue });
    expect((await ask('a')).delayMs).toBe(0);
    expect([(await ask('b')).delayMs, (await ask('c')).delayMs, (await ask('b')).delayMs]).toEqual([1000, 2000, 1000]);
    expect(await ask('d')).toMatchObject({ allowed: false, retryAfterMs: 1000 });
    await end('c', false, queue);
    expect((await ask('d')).delayMs).toBe(2000);
  });

  it('are known under another rate, and cost what they cost', async () => {
    const wide = compile({ algo: 'gcra', rate: 10, interval: '1s', burst: 10 }, 'paced');
    await claim('a', { limit: wide, cost: 10 });
    expect((await claim('b', { limit: wide, cost: 10 })).delayMs).toBe(1000);
    expect(await claim('b', { cost: 10 })).toMatchObject({ allowed: true, delayMs: 1000 });
  });

  it('take what a candidate has along, once', async () => {
    const limit = new CompiledLimit(
      { algo: 'gcra', rate: 10, interval: '1s', burst: 10 },
      { location: 'test', name: 'both', candidate: { algo: 'gcra', rate: 1, interval: '1s', burst: 1 } },
    );
    const { candidate } = limit;
    expect((await claim('a', { limit })).candidate).toMatchObject({ allowed: true });
    expect((await claim('a', { limit })).candidate).toBeUndefined();
    expect((await claim('b', { limit })).candidate).toMatchObject({ allowed: true, delayMs: 1000 });
    await end('b', false, candidate);
    expect((await claim('c', { limit })).candidate).toMatchObject({ allowed: true, delayMs: 1000 });
  });

  it('hold no longer after a clock was set back than when they were made', async () => {
    await delays('a', 'b');
    clock.advanceMs(-3_600_000);
    expect(await delays('b')).toEqual([1000]);
  });

  it('are taken by one of many who ask at once', async () => {
    const answers = await Promise.all(['a', 'b', 'a', 'b', 'b'].map((id) => claim(id)));
    expect(answers.map(({ delayMs }) => delayMs)).toEqual([0, 1000, 0, 1000, 1000]);
    expect(await delays('c')).toEqual([2000]);
  });
});

describe('a claim on Redis', () => {
  it('lives until its units can be used, and as long again as it is kept', async () => {
    const prefix = freshPrefix();
    const store = new RedisStore(redis, { prefix, timeoutMs: PATIENCE_MS });
    const ask = (id: string) =>
      store.reserve({ limit: paced, identity, cost: 1, maxWaitMs: 1e9, claim: { id, keepMs: KEEP_MS } });
    await ask('a');
    await ask('any id: {}\n');
    const keys = (await redis.keys(`${prefix}:*`)).filter((key) => key.includes(':claim:'));
    const lives = (await Promise.all(keys.map((key) => redis.pttl(key)))).toSorted((one, other) => one - other);
    expect(keys.every((key) => key.startsWith(`${prefix}:{${identity}}::paced:gd:claim:`))).toBe(true);
    expect(lives).toEqual([expect.any(Number), expect.any(Number)]);
    expect(lives[0]).toBeLessThanOrEqual(KEEP_MS + 1000);
    expect(lives[1]).toBeGreaterThan(lives[0]!);
    expect(lives[1]).toBeLessThanOrEqual(KEEP_MS + 2000);
    await store.refund(
      ['a', 'any id: {}\n'].map((id) => ({ limit: paced, identity, units: 1, claim: { id, isSpent: true } })),
    );
    expect((await redis.keys(`${prefix}:*`)).filter((key) => key.includes(':claim:'))).toEqual([]);
  });
});

describe('claims', () => {
  const step = fc.record({
    id: fc.nat(3),
    share: costShare,
    act: fc.constantFrom('claim', 'claim', 'claim', 'look', 'spend', 'giveBack', 'consume', 'reserve'),
    clock: clockStep,
  });

  /** Longer than the clock moves: on Redis they lapse by the server's own clock. */
  const KEPT_MS = 4e12;

  it('are alike on both stores, on any history', async () => {
    const property = fc.asyncProperty(
      fc.oneof(...Object.values(optionsOf)),
      fc.array(step, { minLength: 2, maxLength: 25 }),
      async (options, steps) => {
        const clock = new ManualClock();
        const stores = [
          new MemoryStore({ clock: clock.now }),
          new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS }),
        ];
        const limit = compile(options, 'any');
        for (const { id, share, act, clock: stepped } of steps) {
          clock.advanceMs(stepped * Math.min(limit.windowMs(0), 1e8));
          const entry = { limit, identity, cost: costOf(share, limit.quota), maxWaitMs: 1e9 };
          const one = { id: String(id), keepMs: KEPT_MS };
          const answers = await Promise.all(
            stores.map(async (store): Promise<StoreDecision[]> => {
              if (act === 'claim') return [await store.reserve({ ...entry, claim: one })];
              if (act === 'look') return [await store.reserve({ ...entry, claim: { ...one, looks: true } })];
              if (act === 'reserve') return [await store.reserve(entry)];
              if (act === 'consume') return (await store.check([{ entries: [entry] }]))[0]!;
              await store.refund([{ ...entry, units: 1, claim: { id: one.id, isSpent: act === 'spend' } }]);
              return [];
            }),
          );
          const [inProcess, onRedis] = answers.map((decisions) => comparable([decisions]));
          expectEqual(onRedis, inProcess);
        }
      },
    );
    await assertSideBySide(property, propertyRuns(150));
  });
});
