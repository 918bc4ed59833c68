import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type AlgorithmOptions, MemoryStore } from '../../../lib/index.js';
import { CompiledLimit, type StoreDecision } from '../../../lib/testing/store/index.js';
import { algorithmNames, clockStep, costOf, costShare, optionsOf } from '../../support/limits/arbitraries.js';
import { expectEqual, PROPERTY_TIMEOUT_MS, propertyRuns } from '../../support/limits/property-runs.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let clock: ManualClock;
let stores: MemoryStore[];

beforeEach(() => {
  clock = new ManualClock();
  stores = [];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
});

function storeOf(options: { maxKeys?: number } = {}): MemoryStore {
  const store = new MemoryStore({ ...options, clock: clock.now });
  stores.push(store);
  return store;
}

/** What a store holds of a counter: the object itself. */
function stateOf(store: MemoryStore, limit: CompiledLimit, identity: string): object {
  return store['table'].of(limit).get(identity)!.state!;
}

/** How many limits have a map of counters. */
function limitsOf(store: MemoryStore): number {
  return store['table'].limits;
}

describe('what is stored', () => {
  const all: AlgorithmOptions[] = [
    { algo: 'fixed-window', rate: 5, interval: '1m' },
    { algo: 'calendar-window', rate: 5, period: 'hour', retain: '1d' },
    { algo: 'sliding-window', rate: 5, interval: '1m' },
    { algo: 'sliding-log', rate: 5, interval: '1m' },
    { algo: 'token-bucket', rate: 5, interval: '1m' },
    { algo: 'gcra', rate: 5, interval: '1m' },
    { algo: 'leaky-bucket', rate: 5, interval: '1m' },
    { algo: 'concurrency', limit: 5, ttl: '1m' },
  ];
  const none = compile({ algo: 'gcra', rate: 1, interval: '1h' }, 'none');

  it.each(all.map((options) => [options.algo, options] as const))(
    'of a %s stays as it was, field by field, after a look and after refusals',
    async (_, options) => {
      const store = storeOf();
      const limit = compile(options, 'counted');
      await ask(store, none, { identity: 'a' });
      // Several charges of two counters, so that states have been written over before.
      for (const identity of ['a', 'b', 'a', 'b', 'a']) {
        await ask(store, limit, { identity });
        clock.advanceMs(700);
      }
      const before = ['a', 'b'].map((identity) => stateOf(store, limit, identity));
      const copies = structuredClone(before);
      const unchanged = async (what: () => Promise<unknown>) => {
        clock.advanceMs(700);
        await what();
        expect(['a', 'b'].map((identity) => stateOf(store, limit, identity))).toEqual(copies);
      };
      await unchanged(() => ask(store, limit, { identity: 'a', peek: true }));
      await unchanged(() => ask(store, limit, { identity: 'b', peek: true }));
      await unchanged(() => ask(store, limit, { identity: 'a', cost: 5 }));
      await unchanged(() => ask(store, limit, { identity: 'b', cost: 6 }));
      await unchanged(async () => {
        const entries = ['b', 'a'].map((identity) => ({ limit, identity, cost: 1 }));
        const refused = { limit: none, identity: 'a', cost: 1 };
        const [decisions] = await store.check([{ entries: [entries[0]!, refused, entries[1]!] }]);
        expect(decisions!.map(({ allowed }) => allowed)).toEqual([true, false, true]);
      });
    },
  );

  const history = fc.array(
    fc.record({
      clock: clockStep,
      entries: fc.uniqueArray(fc.record({ limit: fc.nat(3), identity: fc.nat(2), cost: costShare }), {
        selector: ({ limit, identity }) => `${limit % 2} ${identity}`,
        minLength: 1,
        maxLength: 4,
      }),
      peek: fc.boolean(),
      /** Stores the first counter as it is. */
      unblock: fc.boolean(),
    }),
    { minLength: 1, maxLength: 20 },
  );

  it.each(algorithmNames)(
    'of limits of %s decides as states that are made anew each time',
    async (name) => {
      const options = optionsOf[name] as fc.Arbitrary<AlgorithmOptions>;
      const property = fc.asyncProperty(options, options, history, async (first, second, steps) => {
        const over = storeOf();
        const anew = storeOf();
        // The first and the third limit share their counters, with other parameters, and so do the second and the fourth.
        const limits = [first, second, second, first].map((each, index) => compile(each, `limit ${index % 2}`));
        const unshared = limits.map(withoutReuse);
        for (const { clock: share, entries, peek, unblock } of steps) {
          clock.advanceMs(share * limits[0]!.windowMs(clock.now() / 1000));
          const askOf = async (store: MemoryStore, of: readonly CompiledLimit[]) => {
            const asked = entries.map(({ limit, identity, cost }) => ({
              limit: of[limit]!,
              identity: `user:${identity}`,
              cost: costOf(cost, of[limit]!.quota),
            }));
            if (unblock) await store.block(asked[0]!, 0);
            return store.check([{ entries: asked, peek }]);
          };
          expectEqual(await askOf(over, limits), await askOf(anew, unshared));
        }
      });
      await fc.assert(property, { numRuns: propertyRuns(100) });
    },
    PROPERTY_TIMEOUT_MS,
  );
});

/** The same limit, of an algorithm that writes over no state. */
function withoutReuse(limit: CompiledLimit): CompiledLimit {
  const algorithm = { ...limit.algorithm, reopen: undefined };
  return Object.create(limit, { algorithm: { value: algorithm } }) as CompiledLimit;
}

const twin = () => compile({ algo: 'gcra', rate: 10, interval: '1h' }, 'twin');

const left = async (store: MemoryStore, limit: CompiledLimit, identity: string) =>
  (await ask(store, limit, { identity, peek: true })).remaining;

describe('limits of one name', () => {
  it('share their counters', async () => {
    const store = storeOf();
    const [one, other] = [twin(), twin()];
    expect(await left(store, one, 'a')).toBe(10);
    expect(await left(store, other, 'a')).toBe(10);
    await ask(store, one, { identity: 'a' });
    await ask(store, other, { identity: 'a', cost: 2 });
    expect([await left(store, one, 'a'), await left(store, other, 'a')]).toEqual([7, 7]);
    expect(limitsOf(store)).toBe(1);
  });

  it('share them from the first check, which has both', async () => {
    const store = storeOf();
    const [one, other] = [twin(), twin()];
    const entries = [
      { limit: one, identity: 'a', cost: 1 },
      { limit: other, identity: 'b', cost: 2 },
    ];
    await store.check([{ entries }]);
    for (const limit of [one, other, twin()]) {
      expect([await left(store, limit, 'a'), await left(store, limit, 'b')]).toEqual([9, 8]);
    }
    expect([limitsOf(store), store.size]).toEqual([1, 2]);
  });

  it('share them again after the last one was forgotten', async () => {
    const store = storeOf();
    const [one, other] = [twin(), twin()];
    for (const limit of [one, other]) await ask(store, limit, { identity: 'a' });
    await store.reset([{ limit: one, identity: 'a' }]);
    expect(limitsOf(store)).toBe(0);
    await ask(store, other, { identity: 'a' });
    await ask(store, one, { identity: 'b' });
    expect([await left(store, one, 'a'), await left(store, other, 'b')]).toEqual([9, 9]);
  });

  it('share them again after the store was closed', async () => {
    const store = storeOf();
    const [one, other] = [twin(), twin()];
    await ask(store, one, { identity: 'a' });
    await store.close();
    expect(await left(store, one, 'a')).toBe(10);
    await ask(store, other, { identity: 'a' });
    expect([await left(store, one, 'a'), store.size, limitsOf(store)]).toEqual([9, 1, 1]);
  });

  it('find a counter that another entry of their check evicted', async () => {
    const store = storeOf({ maxKeys: 1 });
    const [one, other] = [twin(), compile({ algo: 'gcra', rate: 10, interval: '1h' }, 'other')];
    await ask(store, other, { identity: 'a', cost: 4 });
    const entries = [one, other].map((limit) => ({ limit, identity: 'a', cost: 1 }));
    const [decisions] = await store.check([{ entries }]);
    expect(decisions!.map(({ remaining }: StoreDecision) => remaining)).toEqual([9, 5]);
    expect([await left(store, other, 'a'), store.size, limitsOf(store)]).toEqual([5, 1, 1]);
  });
});

const named = (index: number) => compile({ algo: 'gcra', rate: 10, interval: '1s' }, `limit ${index}`);

describe('limits that come and go', () => {
  it('leave nothing once their counters are evicted', async () => {
    const store = storeOf({ maxKeys: 10 });
    for (let i = 0; i < 1000; i++) {
      await ask(store, named(i));
      expect(limitsOf(store)).toBeLessThanOrEqual(10);
    }
    expect(store.size).toBe(10);
  });

  it('leave nothing once their counters have run out', async () => {
    const store = storeOf({ maxKeys: 1000 });
    for (let i = 0; i < 100; i++) await ask(store, named(i));
    expect(limitsOf(store)).toBe(100);
    clock.advanceMs(2000);
    for (let sweeps = 0; sweeps < 11; sweeps++) store['table']['sweep']();
    expect([limitsOf(store), store.size]).toEqual([0, 0]);
  });

  it('leave nothing of those that only look', async () => {
    const store = storeOf();
    for (let i = 0; i < 100; i++) await ask(store, named(i), { peek: true });
    expect(limitsOf(store)).toBe(0);
  });
});

describe('a store that is closed', () => {
  it('holds on to no counter', async () => {
    const store = storeOf();
    const limit = compile({ algo: 'gcra', rate: 10, interval: '1h' });
    for (let i = 0; i < 200; i++) await ask(store, limit, { identity: `user:${i % 100}` });
    const entries = [...store['table'].of(limit).values()].map((entry) => new WeakRef(entry));
    await store.close();
    await nextTurn();
    collectGarbage();
    expect(entries).toHaveLength(100);
    expect(entries.filter((entry) => entry.deref() !== undefined)).toEqual([]);
  });
});

describe('the key of a counter', () => {
  const limit = compile({ algo: 'gcra', rate: 10, interval: '1h' });

  it('is no other identity, however it is written', async () => {
    const store = storeOf();
    await ask(store, limit, { identity: 'x'.repeat(65) });
    const [entry] = store['table'].of(limit).values();
    await ask(store, limit, { identity: entry!.key });
    expect(store.size).toBe(2);
  });

  it('holds on to nothing that it was cut out of', async () => {
    const store = storeOf();
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 200; i++) {
      const header = Buffer.alloc(500_000, 97).toString('latin1');
      await ask(store, limit, { identity: `${i}:client:${header}`.slice(0, 30) });
    }
    collectGarbage();
    expect(store.size).toBe(200);
    // 100 MB if each held on to its header.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  });
});
