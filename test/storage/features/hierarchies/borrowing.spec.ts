import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { MemoryStore, type Store } from '../../../../lib/index.js';
import { propertyRuns } from '../../../support/limits/property-runs.js';
import { connectRedis, freshPrefix, ManualClock, storeKinds } from '../../../support/limits/stores.js';
import { entriesOf, limitsOf, windowOptions, type LevelOptions } from './tree.js';

const teams: readonly LevelOptions[] = [
  { options: windowOptions('fixed-window', 10), lends: 0.5 },
  { options: windowOptions('fixed-window', 4), ceiling: 8 },
];

let redis: Redis;
beforeAll(async () => {
  redis = await connectRedis();
});
afterAll(() => redis.disconnect());

describe.each(Object.entries(storeKinds))('what is borrowed, on %s', (_, make) => {
  const start = (levels: readonly LevelOptions[] = teams) => {
    const clock = new ManualClock();
    const store = make(clock, redis, freshPrefix());
    const limits = limitsOf(levels);
    const ask = async (path: readonly string[], cost = 1, peek = false) => {
      const [decisions] = await store.check([{ entries: entriesOf(limits, path, cost), peek }]);
      return decisions!;
    };
    const allowed = async (path: readonly string[], cost = 1) => (await ask(path, cost)).every((each) => each.allowed);
    return { clock, store, limits, ask, allowed };
  };

  it('is what its parent lends, up to the ceiling', async () => {
    const { ask, allowed } = start();
    expect(await allowed(['o', 'a'], 4)).toBe(true);
    // The organization keeps 5 of 10 units from borrowers, and 6 are left: one can be borrowed.
    expect(await allowed(['o', 'a'], 2)).toBe(false);
    expect(await allowed(['o', 'a'])).toBe(true);
    expect(await ask(['o', 'a'])).toMatchObject([
      { allowed: false, quota: 8, remaining: 0 },
      { allowed: true, quota: 10, remaining: 5 },
    ]);
    // What is kept is there for another team within its own rate, and its cost is not split.
    expect(await allowed(['o', 'b'], 5)).toBe(false);
    expect(await allowed(['o', 'b'], 4)).toBe(true);
    expect(await allowed(['o', 'c'])).toBe(true);
    expect(await ask(['o', 'c'])).toMatchObject([{ allowed: true }, { allowed: false, remaining: 0 }]);
  });

  it('never is more than the ceiling, however much there is to lend', async () => {
    const { ask, allowed } = start([{ options: windowOptions('gcra', 100) }, teams[1]!]);
    expect(await allowed(['o', 'a'], 8)).toBe(true);
    expect(await ask(['o', 'a'])).toMatchObject([{ allowed: false, retryAfterMs: 1000 }, { allowed: true }]);
    expect(await ask(['o', 'b'], 9)).toMatchObject([{ allowed: false, retryAfterMs: Infinity }, { allowed: true }]);
  });

  it.each([
    { algo: 'budget', limit: 10, period: 'day' },
    { algo: 'concurrency', limit: 10, ttl: '1m' },
  ] as const)('is lent by limits that have no rate, such as $algo', async (options) => {
    const { allowed } = start([{ options, lends: 0.5 }, teams[1]!]);
    expect(await allowed(['o', 'a'], 4)).toBe(true);
    expect(await allowed(['o', 'a'], 2)).toBe(false);
    expect(await allowed(['o', 'a'])).toBe(true);
  });

  it('passes through levels that borrow themselves', async () => {
    const { allowed } = start([
      { options: windowOptions('fixed-window', 20), lends: 0.5 },
      { options: windowOptions('fixed-window', 4), ceiling: 9 },
      { options: windowOptions('fixed-window', 2), ceiling: 7 },
    ]);
    expect(await allowed(['o', 't', 'u'], 7)).toBe(true);
    expect(await allowed(['o', 't', 'u'])).toBe(false);
    expect(await allowed(['o', 't', 'v'], 2)).toBe(true);
    expect(await allowed(['o', 't', 'w'])).toBe(false);
    // Of 20, half is kept from teams beyond their rate, and 9 are used.
    expect(await allowed(['o', 's', 'u'], 5)).toBe(false);
    expect(await allowed(['o', 's', 'u'], 4)).toBe(true);
  });

  it('is not taken of the level above while the lender is within its own rate', async () => {
    const { ask, allowed } = start([
      { options: windowOptions('fixed-window', 20), lends: 0 },
      { options: windowOptions('fixed-window', 6), ceiling: 9, lends: 0.5 },
      { options: windowOptions('fixed-window', 2), ceiling: 7 },
    ]);
    // Of the ceiling of 9 the team keeps 3 units, and lends up to its own rate of 6, since nothing can be borrowed above.
    expect(await allowed(['o', 't', 'u'], 6)).toBe(true);
    expect(await ask(['o', 't', 'u'], 1, true)).toMatchObject([
      { allowed: false, retryAfterMs: 1000, remaining: 0 },
      { allowed: false },
      { allowed: true },
    ]);
    expect(await allowed(['o', 't', 'v'], 1)).toBe(false);
  });

  it('is nothing where all is kept, and all where nothing is', async () => {
    const none = start([{ options: windowOptions('sliding-log', 10), lends: 0 }, teams[1]!]);
    expect([await none.allowed(['o', 'a'], 4), await none.allowed(['o', 'a'])]).toEqual([true, false]);
    const all = start([{ options: windowOptions('sliding-log', 10) }, teams[1]!]);
    expect([await all.allowed(['o', 'a'], 8), await all.allowed(['o', 'b'], 2)]).toEqual([true, true]);
  });

  it('is not kept by a level in shadow mode, nor where the parent is not asked', async () => {
    const shadow = start([{ ...teams[0]!, lends: 0, shadow: true }, teams[1]!]);
    expect([await shadow.allowed(['o', 'a'], 8), await shadow.allowed(['o', 'a'])]).toEqual([true, false]);
    const { store, limits } = start();
    const [child] = entriesOf(limits, ['o', 'a'], 8);
    expect(await store.check([{ entries: [child!] }])).toMatchObject([[{ allowed: true, remaining: 0 }]]);
  });

  it('comes back when it is given back, and counts as the others do', async () => {
    const { store, limits, ask, allowed } = start();
    expect(await allowed(['o', 'a'], 5)).toBe(true);
    expect(await allowed(['o', 'a'])).toBe(false);
    await store.refund(entriesOf(limits, ['o', 'a'], 2).map(({ limit, identity }) => ({ limit, identity, units: 2 })));
    expect(await ask(['o', 'a'], 2, true)).toMatchObject([{ allowed: true }, { allowed: true }]);
  });
});

/** As the guide says it, for windows that never end. */
class Model {
  private readonly used = new Map<string, number>();

  constructor(private readonly levels: readonly { rate: number; ceiling: number; lends: number }[]) {}

  allows(path: readonly string[], cost: number): boolean {
    const places = path.map((_, depth) => path.slice(0, depth + 1).join('/')).toReversed();
    let borrows = false;
    for (const [index, place] of places.entries()) {
      const { rate, ceiling, lends } = this.levels[path.length - 1 - index]!;
      const kept: number = borrows ? Math.ceil(Number(((1 - lends) * rate).toPrecision(12))) : 0;
      const total: number = (this.used.get(place) ?? 0) + cost;
      if (total + kept > ceiling) return false;
      borrows = total > rate;
    }
    if (borrows) return false;
    for (const place of places) this.used.set(place, (this.used.get(place) ?? 0) + cost);
    return true;
  }
}

describe('borrowing', () => {
  const level = fc.record({
    rate: fc.integer({ min: 1, max: 20 }),
    more: fc.integer({ min: 0, max: 20 }),
    lends: fc.constantFrom(0, 0.25, 0.5, 0.9, 1),
  });
  const asked = fc.record({
    path: fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 3 }),
    cost: fc.integer({ min: 1, max: 6 }),
  });

  it('is decided as a model of its formula does', () =>
    fc.assert(
      fc.asyncProperty(fc.tuple(level, level, level), fc.array(asked, { maxLength: 40 }), async (drawn, steps) => {
        const clock = new ManualClock();
        const store: Store = new MemoryStore({ clock: clock.now });
        const limits = limitsOf(
          drawn.map(({ rate, more, lends }) => ({
            options: { algo: 'fixed-window', rate, interval: '1d' },
            ceiling: rate + more,
            lends,
          })),
        );
        const model = new Model(
          drawn.map(({ rate, more, lends }, depth) => ({ rate, ceiling: depth === 0 ? rate : rate + more, lends })),
        );
        for (const { path, cost } of steps) {
          const [decisions] = await store.check([{ entries: entriesOf(limits, path, cost) }]);
          expect(decisions!.every(({ allowed }) => allowed)).toBe(model.allows(path, cost));
        }
      }),
      { numRuns: propertyRuns(300) },
    ));

  it('shares rate and ceiling among instances that count for themselves', () => {
    const limits = limitsOf([{ options: windowOptions('fixed-window', 20) }, teams[1]!]);
    const halved = limits.map((limit) => limit.partOf(0.5));
    expect(halved.map(({ quota, declared }) => [quota, quota - declared.quota])).toEqual([
      [10, 0],
      [4, 2],
    ]);
  });
});
