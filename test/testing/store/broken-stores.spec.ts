import { describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, RateLimitConfigError } from '../../../lib/index.js';
import type { AlgorithmName } from '../../../lib/index.js';
import {
  CompiledLimit,
  type MakeStore,
  storeConformance,
  type StoreConformanceOptions,
} from '../../../lib/testing/store/index.js';
import { ALGORITHMS } from '../../../lib/testing/store/conformance/stage.js';
import { MapStore } from './map-store.js';

/** Runs the suite, or the tests of it with such a name, and returns the names of those that fail. */
async function failuresOf(
  make: MakeStore,
  algorithms: readonly AlgorithmName[] = ['fixed-window', 'gcra'],
  names = /(?:)/,
) {
  const tests: [name: string, run: () => Promise<void>][] = [];
  const runner = {
    describe: (_: string, define: () => void) => define(),
    it: (...test: (typeof tests)[0]) => tests.push(test),
  };
  storeConformance(make, { ...runner, algorithms });
  const failed: string[] = [];
  for (const [name, run] of tests.filter(([each]) => names.test(each))) await run().catch(() => failed.push(name));
  return failed;
}

const nameless = (limit: CompiledLimit) => new CompiledLimit(limit.options, { location: 'test', name: 'one' });

describe('the conformance suite', () => {
  it('passes ours', async () => {
    await expect(failuresOf(({ clock }) => new MapStore({ clock }))).resolves.toEqual([]);
  });

  /** Our clock stands still and the one of the store goes on, by less each time it is read and 40 ms in the end. */
  const withOwnClock = (Made: typeof MapStore): MakeStore => {
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now);
    let reads = 0;
    return () => new Made({ clock: () => now * 1000 + Math.round(40_000 * (1 - 0.95 ** reads++)) });
  };

  it('passes a store whose clock decides about a unit', async () => {
    const make = withOwnClock(MapStore);
    await expect(failuresOf(make, ALGORITHMS, /any history/)).resolves.toEqual([]);
  });

  it('finds a store with a clock of its own that refuses what fits', async () => {
    class Strict extends MapStore {
      override async check(checks: Parameters<MapStore['check']>[0]) {
        const all = await super.check(checks);
        return all.map((decisions) =>
          decisions.map((each) => (each.allowed && each.remaining === 0 ? { ...each, allowed: false } : each)),
        );
      }
    }
    const failed = await failuresOf(withOwnClock(Strict));
    expect(failed).toContain('gcra: lets through what its quota holds, and says what is left');
  });

  it('finds a store whose transactions overlap', async () => {
    class Overlapping extends MapStore {
      protected override async transact<T>(keys: readonly string[], change: Parameters<MapStore['transact']>[1]) {
        const values = keys.map((key) => this.values.get(key));
        await new Promise(setImmediate);
        const { writes, result } = change(values);
        for (const { key, value } of writes) this.values.set(key, value!);
        return result as T;
      }
    }
    const failed = await failuresOf(({ clock }) => new Overlapping({ clock }));
    expect(failed).toContain('gcra: never lets more through than its quota, no matter how many check at once');
  });

  it('finds a store that charges each limit for itself', async () => {
    class Single extends MapStore {
      override async check(checks: Parameters<MapStore['check']>[0]) {
        return Promise.all(
          checks.map(async (check) => {
            const parts = check.entries.map((entry) => super.check([{ ...check, entries: [entry] }]));
            return (await Promise.all(parts)).map(([decisions]) => decisions![0]!);
          }),
        );
      }
    }
    const failed = await failuresOf(({ clock }) => new Single({ clock }));
    expect(failed).toContain('fixed-window and gcra: a check is allowed by all of its limits, or charged to none');
    expect(failed).toContain('fixed-window and gcra: a shadow limit is counted, and never refuses');
  });

  it('finds a store that counts limits of different names together', async () => {
    class Nameless extends MemoryStore {
      override check(checks: Parameters<MemoryStore['check']>[0]) {
        return super.check(
          checks.map((check) => ({
            ...check,
            entries: check.entries.map((entry) => ({ ...entry, limit: nameless(entry.limit) })),
          })),
        );
      }
    }
    const failed = await failuresOf(({ clock }) => new Nameless({ clock }));
    expect(failed).toContain('gcra: keeps the counters of other algorithms and names apart');
  });

  it('finds a store that charges for a cost that never fits', async () => {
    class Greedy extends MapStore {
      override async check(checks: Parameters<MapStore['check']>[0]) {
        const decisions = await super.check(checks);
        for (const { limit, identity, cost } of checks.flatMap(({ entries }) => entries)) {
          if (cost > limit.quota) await this.penalize({ limit, identity, units: 1 });
        }
        return decisions;
      }
    }
    const failed = await failuresOf(({ clock }) => new Greedy({ clock }));
    expect(failed).toContain('gcra: never allows a cost above the quota, and charges nothing for it');
  });

  it.each([
    ['writes when it only looks', 'gcra: looks without a trace', 'check'],
    ['gives nothing back', 'fixed-window: gives units back, at most those that were taken', 'refund'],
    ['forgets no counter', 'fixed-window: forgets a counter that is reset', 'reset'],
    ['blocks nobody', 'gcra: refuses a key that is blocked, until it is not', 'block'],
  ] as const)('finds a store that %s', async (_, name, method) => {
    const make: MakeStore = ({ clock }) => {
      const store = new MapStore({ clock });
      const own: MapStore['check'] = store.check.bind(store);
      if (method === 'check') store.check = (checks) => own(checks.map((check) => ({ ...check, peek: false })));
      else store[method] = () => Promise.resolve();
      return store;
    };
    await expect(failuresOf(make)).resolves.toContain(name);
  });

  it('finds a store that takes identities for one another', async () => {
    class Loose extends MemoryStore {
      override check(checks: Parameters<MemoryStore['check']>[0]) {
        const lower = checks.map((check) => ({
          ...check,
          entries: check.entries.map((entry) => ({ ...entry, identity: entry.identity.toLowerCase() })),
        }));
        return super.check(lower);
      }
    }
    await expect(failuresOf(({ clock }) => new Loose({ clock }))).resolves.toContain('gcra: keeps identities apart');
  });

  it.each([
    [{}, 'storeConformance: found no global describe and it'],
    [
      { describe: () => undefined, it: () => undefined, algorithms: ['adaptive'] },
      "algorithms: expected fixed-window, sliding-window, sliding-log, token-bucket, gcra, leaky-bucket, calendar-window, budget or concurrency, received 'adaptive'",
    ],
    [
      { describe: () => undefined, it: () => undefined, algorithms: [] },
      'algorithms: expected fixed-window, sliding-window, sliding-log, token-bucket, gcra, leaky-bucket, calendar-window, budget or concurrency, received undefined',
    ],
  ] as [StoreConformanceOptions, string][])('refuses %j', (options, message) => {
    expect(() => storeConformance(() => new MapStore(), options)).toThrow(RateLimitConfigError);
    expect(() => storeConformance(() => new MapStore(), options)).toThrow(message);
  });
});
