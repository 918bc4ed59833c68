import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { type AlgorithmOptions, MemoryStore, RedisStore, type Store } from '../../../../lib/index.js';
import type { Check } from '../../../../lib/testing/store/index.js';
import {
  assertSideBySide,
  expectEqual,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../../../support/limits/property-runs.js';
import { ask, comparable, compile, connectRedis, freshPrefix, ManualClock } from '../../../support/limits/stores.js';
import { sharedLimit } from './simulation.js';
import { PATIENCE_MS } from '../../../support/redis/patience.mjs';

const RUNS = propertyRuns(60);

const options = fc.record({
  algo: fc.constantFrom('sliding-window', 'token-bucket', 'gcra'),
  rate: fc.integer({ min: 1, max: 40 }),
  interval: fc.constantFrom('1s', '7s', '1m', 11),
  burst: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
  floor: fc.constantFrom(0, 0, 0.05, 0.3, 1),
});

type Options = typeof options extends fc.Arbitrary<infer T> ? T : never;

const limitOf = ({ algo, rate, interval, burst, floor }: Options) => {
  const own = algo === 'sliding-window' || burst === undefined ? {} : { burst };
  return sharedLimit({ algo, rate, interval, ...own } as AlgorithmOptions, { floor });
};

/** Who asks: none, or a tenant of a weight. */
const tenants = [undefined, 'a', 'a', 'b', 'c', 'd'].map((id, index) => id && { id, weight: index < 3 ? 1 : index });

const asked = fc.record({
  tenant: fc.nat(tenants.length - 1),
  cost: fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 3 }) }, fc.integer({ min: 1, max: 60 })),
  peek: fc.boolean(),
  /** Beside another limit, which may refuse. */
  beside: fc.boolean(),
  old: fc.boolean(),
});

const steps = fc.array(
  fc.record({
    /** A share of the interval. */
    clock: fc.oneof(
      { weight: 5, arbitrary: fc.double({ min: 0, max: 0.3, noNaN: true }) },
      fc.double({ min: -2, max: 3, noNaN: true }),
    ),
    checks: fc.array(asked, { maxLength: 8 }),
    operation: fc.constantFrom(
      'none',
      'none',
      'refund',
      'late refund',
      'penalize',
      'reset',
      'block',
      'unblock',
      'change',
    ),
    tenant: fc.nat(tenants.length - 1),
  }),
  { minLength: 1, maxLength: 25 },
);

/** What many tenants ask, more than the sums know by name. */
const manySteps = fc.array(
  fc.record({
    /** A share of the interval. */
    pause: fc.double({ min: 0, max: 0.4, noNaN: true }),
    checks: fc.array(fc.record({ tenant: fc.nat(13), cost: fc.integer({ min: 1, max: 9 }), peek: fc.boolean() }), {
      minLength: 1,
      maxLength: 12,
    }),
  }),
  { minLength: 1, maxLength: 20 },
);

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis({ enableAutoPipelining: true });
});
afterAll(() => redis.disconnect());

describe('shares', () => {
  it(
    'are the same in both stores, field by field, on any history',
    () =>
      assertSideBySide(
        fc.asyncProperty(options, options, steps, async (first, changed, history) => {
          const clock = new ManualClock();
          const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
          const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
          let limit = limitOf(first);
          let old = limit;
          const other = compile({ algo: 'gcra', rate: 5, interval: '1s', burst: 3 }, 'other');
          const identity = 'global';
          const both = async (act: (store: Store) => Promise<unknown>) => {
            await Promise.all([act(memory), act(remote)]);
          };
          try {
            for (const { clock: share, checks, operation, tenant } of history) {
              clock.advanceMs(share * limit.windowMs(0));
              const all = checks.map(({ tenant: who, cost, peek, beside, old: stale }): Check => ({
                peek,
                entries: [
                  { limit: (stale ? old : limit).meet({ tenant: tenants[who] || undefined }), identity, cost },
                  ...(beside ? [{ limit: other, identity, cost: 1 }] : []),
                ],
              }));
              const here = await memory.check(all);
              expectEqual(comparable(await remote.check(all)), comparable(here));
              const counter = { limit: limit.meet({ tenant: tenants[tenant] || undefined }), identity };
              const chargedAt = clock.micros - Math.floor(limit.windowMs(0) * 1100);
              if (operation === 'refund') await both((store) => store.refund([{ ...counter, units: 2 }]));
              if (operation === 'late refund')
                await both((store) => store.refund([{ ...counter, units: 2, chargedAt }]));
              if (operation === 'penalize') await both((store) => store.penalize({ ...counter, units: 3 }));
              if (operation === 'block') await both((store) => store.block(counter, 500));
              if (operation === 'unblock') await both((store) => store.block(counter, 0));
              if (operation === 'reset') {
                await both((store) => store.reset([counter]));
                // What is left of tenants is told apart by when it began.
                clock.advanceMs(1);
              }
              if (operation === 'change') {
                old = limit;
                limit =
                  limit.quota === limitOf(first).quota ? limitOf({ ...changed, algo: first.algo }) : limitOf(first);
              }
            }
          } finally {
            await Promise.all([memory.close(), remote.close()]);
          }
        }),
        RUNS,
      ),
    PROPERTY_TIMEOUT_MS,
  );

  it(
    'are the same in both stores, however many tenants ask',
    () =>
      assertSideBySide(
        fc.asyncProperty(options, manySteps, async (own, history) => {
          const clock = new ManualClock();
          const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
          const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
          const limit = limitOf(own);
          try {
            for (const { pause, checks } of history) {
              clock.advanceMs(pause * limit.windowMs(0));
              const all = checks.map(({ tenant, cost, peek }): Check => {
                const asking = { id: `t${tenant}`, weight: 1 + (tenant % 3) };
                return { peek, entries: [{ limit: limit.meet({ tenant: asking }), identity: 'global', cost }] };
              });
              expectEqual(comparable(await remote.check(all)), comparable(await memory.check(all)));
            }
          } finally {
            await Promise.all([memory.close(), remote.close()]);
          }
        }),
        RUNS,
      ),
    PROPERTY_TIMEOUT_MS,
  );

  describe.each(['MemoryStore', 'RedisStore'])('on a %s', (kind) => {
    const start = () => {
      const clock = new ManualClock();
      const store: Store =
        kind === 'MemoryStore'
          ? new MemoryStore({ clock: clock.now })
          : new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
      const limit = sharedLimit({ algo: 'sliding-window', rate: 100, interval: '1m' });
      const take = async (id: string, units: number) => {
        let taken = 0;
        for (let i = 0; i < units; i++) {
          if ((await ask(store, limit.meet({ tenant: { id, weight: 1 } }), { identity: 'global' })).allowed) taken++;
        }
        return taken;
      };
      return { clock, store, take };
    };

    it('keep no more for a tenant that used more than its part than is left of the part', async () => {
      const { clock, store, take } = start();
      await take('c', 1);
      await take('b', 1);
      expect(await take('a', 50)).toBe(50);
      clock.advanceMs(30_000);
      expect([await take('b', 1), await take('c', 1), await take('a', 30)]).toEqual([1, 1, 30]);
      clock.advanceMs(36_000);
      // Of 100 units 32 are used, 4 of its part of 34 are kept for a, and 1 for c.
      expect(await take('b', 100)).toBe(63);
      expect(await take('a', 5)).toBe(4);
      await store.close();
    });

    it('keep no more for a tenant that was alone than is left of its part beside others', async () => {
      const { clock, store, take } = start();
      expect(await take('a', 60)).toBe(60);
      clock.advanceMs(30_000);
      expect(await take('a', 30)).toBe(30);
      clock.advanceMs(6000);
      expect([await take('b', 1), await take('c', 1)]).toEqual([1, 1]);
      clock.advanceMs(30_000);
      // Of 100 units 32 are used, and 4 of the part of 34 that a has by now are kept.
      expect(await take('b', 100)).toBe(64);
      expect(await take('a', 5)).toBe(4);
      await store.close();
    });
  });

  it.each(['sliding-window', 'token-bucket', 'gcra'] as const)(
    'of %s are charged a penalty up to a debt of all tenants, not of their own',
    async (algo) => {
      const clock = new ManualClock();
      const memory = new MemoryStore({ clock: clock.now });
      const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
      const limit = sharedLimit({ algo, rate: 100, interval: '1m' });
      const of = (id: string) => limit.meet({ tenant: { id, weight: 1 } });
      for (const store of [memory, remote]) {
        const left = async () => (await ask(store, limit, { identity: 'global', peek: true })).remaining;
        for (let i = 0; i < 50; i++) await ask(store, of('a'), { identity: 'global' });
        // 50 are kept for b, who asks for more than there is.
        await ask(store, of('b'), { identity: 'global', cost: 60 });
        await store.penalize({ limit: of('a'), identity: 'global', units: 140 });
        expect(await left()).toBe(0);
        await store.refund([{ limit, identity: 'global', units: 100 }]);
        expect(await left()).toBe(10);
        await store.close();
      }
    },
  );

  it('leave nothing of a total that is fresh, also if the clock steps back then', async () => {
    const clock = new ManualClock();
    const memory = new MemoryStore({ clock: clock.now, slackMs: Infinity });
    const remote = new RedisStore(redis, { clock, prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
    const limit = sharedLimit({ algo: 'token-bucket', rate: 1, interval: '1s' });
    const own = { limit: limit.meet({ tenant: { id: 'a', weight: 1 } }), identity: 'global' };
    for (const store of [memory, remote]) await store.refund([{ ...own, units: 2 }]);
    clock.micros--;
    const checks = [{ entries: [{ ...own, cost: 1 }] }];
    expectEqual(comparable(await remote.check(checks)), comparable(await memory.check(checks)));
    await Promise.all([memory.close(), remote.close()]);
  });
});
