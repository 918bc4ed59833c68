import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Store } from '../../../../lib/index.js';
import type { CheckEntry, StoreDecision } from '../../../../lib/testing/store/index.js';
import {
  anyOptions,
  budgetOptions,
  clockStep,
  concurrencyOptions,
  costOf,
  costShare,
  optionsOf,
  warmingOptions,
} from '../../../support/limits/arbitraries.js';
import {
  assertSideBySide,
  expectEqual,
  PROPERTY_TIMEOUT_MS,
  propertyRuns,
} from '../../../support/limits/property-runs.js';
import { compile, connectRedis, ManualClock, type StoredOptions, storeKinds } from '../../../support/limits/stores.js';

const RUNS = propertyRuns(60);

const steps = fc.array(fc.record({ clock: clockStep, most: costShare, second: fc.boolean() }), {
  minLength: 1,
  maxLength: 12,
});
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const decidedBy = async (store: Store, entries: readonly CheckEntry[], more: object): Promise<StoreDecision[]> =>
  (await store.check([{ entries, ...more }]))[0]!;

/** The most units that a look allows all limits, found one by one. */
async function mostOf(store: Store, entries: readonly CheckEntry[], most: number): Promise<number> {
  let [fits, beyond] = [0, most + 1];
  while (beyond - fits > 1) {
    const cost = Math.floor((fits + beyond) / 2);
    const looked = await decidedBy(
      store,
      entries.map((entry) => ({ ...entry, cost })),
      { peek: true },
    );
    if (looked.every(({ allowed }) => allowed)) fits = cost;
    else beyond = cost;
  }
  return fits;
}

describe.each(Object.entries(storeKinds))('a check that takes what is there, on %s', (_, make) => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis({ enableAutoPipelining: true });
  });
  afterAll(() => redis.disconnect());

  async function takesMost(options: StoredOptions, others: StoredOptions, history: Steps) {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const limits = [compile(options, 'one'), compile(others, 'other')];
    try {
      for (const { clock: step, most: share, second } of history) {
        clock.advanceMs(step * limits[0]!.windowMs(clock.now() / 1000));
        const most = costOf(share, limits[0]!.quota);
        const chosen = second ? limits : limits.slice(0, 1);
        const entries = chosen.map((limit) => ({ limit, identity: 'user:1', cost: most }));
        const expected = await mostOf(store, entries, most);
        const looked = await decidedBy(store, entries, { peek: true, upTo: true });
        const ones = entries.map((entry) => ({ ...entry, cost: 1 }));
        const one = await decidedBy(store, ones, { peek: true });
        const made = await decidedBy(store, entries, { upTo: true });
        for (const { taken } of [...looked, ...made]) expectEqual(taken, expected);
        expectEqual(
          made.every(({ allowed }) => allowed),
          expected > 0,
        );
        // What is refused is refused as one unit is.
        if (expected === 0) {
          expectEqual(
            made.map(({ retryAfterMs, allowed }) => ({ retryAfterMs, allowed })),
            one.map(({ retryAfterMs, allowed }) => ({ retryAfterMs, allowed })),
          );
        }
      }
    } finally {
      await store.close();
    }
  }

  const all = { ...optionsOf, concurrency: concurrencyOptions, budget: budgetOptions, warming: warmingOptions };
  it.each(Object.keys(all) as (keyof typeof all)[])(
    '%s gives the most units that a look allows, and not one more',
    async (name) => {
      const options = all[name] as fc.Arbitrary<StoredOptions>;
      await assertSideBySide(fc.asyncProperty(options, anyOptions, steps, takesMost), RUNS);
    },
    PROPERTY_TIMEOUT_MS,
  );

  it('finds the most units where far more are wanted than are left', async () => {
    const clock = new ManualClock();
    const store = make(clock, redis);
    const limit = compile({ algo: 'gcra', rate: 1000, interval: '1h', burst: 1000 }, 'large');
    const entry = { limit, identity: 'user:1', cost: Number.MAX_SAFE_INTEGER };
    const [first] = await decidedBy(store, [entry], { upTo: true });
    const [second] = await decidedBy(store, [entry], { upTo: true });
    expect(first).toMatchObject({ allowed: true, taken: 1000, remaining: 0, retryAfterMs: 0 });
    expect(second).toMatchObject({ allowed: false, taken: 0, remaining: 0, retryAfterMs: 3600 });
    await store.close();
  });
});
