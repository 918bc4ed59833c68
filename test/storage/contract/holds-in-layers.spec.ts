import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore, RateLimitStoreError, type Store } from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings, type Refund } from '../../../lib/testing/store/index.js';
import { ask, chargeOf, featuresOfOptions, ManualClock } from '../../support/limits/stores.js';
import { fallingBack, perInstance, withCandidates } from '../../support/limits/layers.js';

const ten: AlgorithmOptions = { algo: 'budget', limit: 10, period: 'year', hold: '5s', onLapse: 'release' };
const identity = 'ip:203.0.113.7';

const limitOf = (name: string, settings: Partial<LimitSettings> = {}) =>
  new CompiledLimit(ten, { location: 'test', featuresOfOptions, name, ...settings });

async function reserve(store: Store, units: number, ...limits: CompiledLimit[]): Promise<Refund[] | undefined> {
  const entries = limits.map((limit) => ({ limit, identity, cost: units }));
  const [decisions] = await store.check([{ entries, hold: true, refundable: true }]);
  if (!decisions!.every(({ allowed }) => allowed)) return undefined;
  return limits.map((limit, index) => chargeOf({ limit, identity, cost: units }, decisions![index]!));
}

const left = async (store: Store, limit: CompiledLimit) => (await ask(store, limit, { peek: true })).remaining;

describe('units that are held, by layers of stores', () => {
  let clock: ManualClock;
  let first: MemoryStore;
  let second: MemoryStore;

  beforeEach(() => {
    clock = new ManualClock();
    first = new MemoryStore({ clock: clock.now });
    second = new MemoryStore({ clock: clock.now });
  });
  afterEach(() => Promise.all([first.close(), second.close()]));

  it('are held and settled by the candidate, too', async () => {
    const limit = limitOf('money', { candidate: { ...ten, limit: 20 } as AlgorithmOptions });
    const store = withCandidates(first);
    const [held] = (await reserve(store, 6, limit))!;
    expect([await left(first, limit), await left(first, limit.candidate!)]).toEqual([4, 14]);
    await store.refund([{ ...held!, actual: 2 }]);
    await store.refund([{ ...held!, actual: 2 }]);
    expect([await left(first, limit), await left(first, limit.candidate!)]).toEqual([8, 18]);
  });

  it('are held in process while the store fails, and settled there', async () => {
    const limit = limitOf('money');
    let fails = true;
    const failing = Object.assign(Object.create(first) as MemoryStore, {
      check: () => Promise.reject(new RateLimitStoreError('down')),
      refund: (refunds: Refund[]) => (fails ? Promise.reject(new RateLimitStoreError('down')) : first.refund(refunds)),
    });
    const store = fallingBack(failing, second);
    const [here] = (await reserve(store, 6, limit))!;
    const [there] = (await reserve(first, 6, limit))!;
    expect([await left(first, limit), await left(second, limit)]).toEqual([4, 4]);
    await store.refund([{ ...here!, actual: 1 }]);
    expect([await left(first, limit), await left(second, limit)]).toEqual([4, 9]);
    // What the first store holds is settled there, or not at all.
    const settled = { ...there!, source: 'redis', actual: 1 } as const;
    await expect(store.refund([settled])).rejects.toThrow(RateLimitStoreError);
    fails = false;
    await store.refund([settled]);
    expect([await left(first, limit), await left(second, limit)]).toEqual([9, 9]);
  });

  it('are held of all limits or of none, where each is counted', async () => {
    const [own, shared] = [limitOf('own', { instance: true }), limitOf('shared')];
    const store = perInstance(first, second);
    const held = (await reserve(store, 6, own, shared))!;
    expect([await left(second, own), await left(first, shared)]).toEqual([4, 4]);
    await store.refund([{ ...held[0]!, actual: 1 }]);
    // The shared one refuses, so the hold of the other one is given back.
    expect(await reserve(store, 5, own, shared)).toBeUndefined();
    expect([await left(second, own), await left(first, shared)]).toEqual([9, 4]);
    clock.advanceMs(5000);
    expect([await left(second, own), await left(first, shared)]).toEqual([9, 10]);
  });
});
