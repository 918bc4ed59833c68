import { describe, expect, it } from '@jest/globals';
import { RateLimitArgumentError, RateLimitStoreError } from '../../../lib/index.js';
import { type CompiledLimit, type CounterChanges, TransactionalStore } from '../../../lib/testing/store/index.js';
import { holdsOfChangedWindows } from '../../storage/contract/holds/changed-windows.js';
import { holdsOfEachAlgorithm } from '../../storage/contract/holds/each-algorithm.js';
import { holdsStage } from '../../storage/contract/holds/stage.js';
import { operationsContract } from '../../storage/contract/operations-contract.js';
import { storeContract } from '../../storage/contract/store-contract.js';
import { concurrencyContract } from '../../storage/contract/concurrency-contract.js';
import { ask, compile, ManualClock } from '../../support/limits/stores.js';
import { MapStore } from './map-store.js';

const make = (clock: ManualClock) => new MapStore({ clock: clock.now });
const limit = compile({ algo: 'gcra', rate: 5, interval: '1h' });

describe('a store on transactions', () => {
  storeContract(make);
  describe('operations', () => operationsContract(make, { learns: false }));
  describe('concurrency', () => concurrencyContract(make));
  describe('holds', () => {
    const stage = holdsStage(make);
    holdsOfEachAlgorithm(stage);
    holdsOfChangedWindows(stage);
  });

  it('asks for keys in ascending order, and writes nothing that does not change', async () => {
    const seen: (readonly string[])[] = [];
    const writes: number[] = [];
    class Watched extends MapStore {
      protected override transact<T>(
        keys: readonly string[],
        change: (values: readonly (string | undefined)[]) => CounterChanges<T>,
      ): Promise<T> {
        seen.push(keys);
        return super.transact(keys, (values) => {
          const changes = change(values);
          writes.push(changes.writes.length);
          return changes;
        });
      }
    }
    const store = new Watched({ prefix: 'p' });
    const other = compile({ algo: 'fixed-window', rate: 1, interval: '1h' }, 'a');
    const entries = [limit, other].map((each) => ({ limit: each, identity: 'u', cost: 1 }));
    await store.check([{ entries }]);
    await store.check([{ entries }]);
    expect(seen[0]).toEqual(['p:{u}::a:fw', 'p:{u}::gcra:5/1h:gd']);
    expect(writes).toEqual([2, 0]);
  });

  it('keeps a counter as long as it matters', async () => {
    const clock = new ManualClock();
    const expiry: number[] = [];
    class Watched extends MapStore {
      protected override transact<T>(
        keys: readonly string[],
        change: (values: readonly (string | undefined)[]) => CounterChanges<T>,
      ): Promise<T> {
        return super.transact(keys, (values) => {
          const changes = change(values);
          expiry.push(...changes.writes.map(({ expiresAt }) => expiresAt));
          return changes;
        });
      }
    }
    await ask(new Watched({ clock: clock.now }), compile({ algo: 'fixed-window', rate: 5, interval: '10s' }));
    expect(expiry[0]).toBeGreaterThan(clock.micros / 1000 + 10_000);
    expect(expiry[0]).toBeLessThan(clock.micros / 1000 + 12_000);
  });

  it.each([
    ['no text of ours', 'x'],
    ['a number', 7],
    ['another format', '[2,1,null,null,null,null]'],
    ['half of a text', '[1,179'],
    ['too few parts', '[1,9e15]'],
    ['a text as its state', '[1,9e15,null,null,"junk",null]'],
    ['an empty state', '[1,9e15,null,null,{},null]'],
    ['an empty block', '[1,9e15,null,{},null,null]'],
    ['a state of something else', '[1,9e15,null,null,{"now":1,"a":1},null]'],
  ])('fails where it finds %s', async (_, value) => {
    const store = new MapStore();
    await ask(store, limit);
    for (const key of store.values.keys()) store.values.set(key, value as string);
    await expect(ask(store, limit)).rejects.toThrow(RateLimitStoreError);
    await expect(ask(store, limit)).rejects.toThrow(`key 'sluice:{ip:203.0.113.7}::gcra:5/1h:gd'`);
  });

  it('says what a class of the app forgot', async () => {
    class Silent extends TransactionalStore {
      protected transact<T>(): Promise<T> {
        return Promise.resolve(undefined as T);
      }
    }
    await expect(ask(new Silent(), limit)).rejects.toThrow(
      'transact of Silent did not call the function that it was given',
    );
    class Short extends TransactionalStore {
      protected async transact<T>(_: readonly string[], change: (values: never[]) => CounterChanges<T>): Promise<T> {
        return change([]).result;
      }
    }
    await expect(ask(new Short(), limit)).rejects.toThrow('expected to be called back with a list of 1 values');
  });

  it('passes on why a transaction failed, and counts nothing', async () => {
    const store = new MapStore();
    let fails = true;
    class Failing extends MapStore {
      protected override async transact<T>(...given: Parameters<MapStore['transact']>): Promise<T> {
        if (fails) throw new Error('deadlock detected');
        return (await super.transact(...given)) as T;
      }
    }
    const failing = new Failing();
    await expect(ask(failing, limit)).rejects.toThrow('deadlock detected');
    fails = false;
    await expect(ask(failing, limit)).resolves.toMatchObject({ allowed: true, remaining: 4 });
    await store.close();
  });

  it.each([
    ["'credits'", compile({ algo: 'calendar-window', rate: 5, period: 'month', credits: true } as never, 'paid')],
  ] as [string, CompiledLimit][])('refuses a limit with %s', async (what, unfit) => {
    await expect(ask(new MapStore(), unfit)).rejects.toThrow(RateLimitArgumentError);
    await expect(ask(new MapStore(), unfit)).rejects.toThrow(`has ${what}, which a MapStore does not support`);
  });
});
