import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CompiledLimit } from '../../lib/algorithms/limit.js';
import { RateLimitStoreError } from '../../lib/errors/errors.js';
import { MemoryStore } from '../../lib/stores/memory.store.js';
import { ScopedStore } from '../../lib/stores/scoped.store.js';
import type { CheckEntry, Store } from '../../lib/stores/store.js';
import { ask, ManualClock } from '../support/stores.js';

const IDENTITY = 'ip:203.0.113.7';

const limitOf = (name: string, rate: number, instance: boolean, shadow = false) =>
  new CompiledLimit({ algo: 'fixed-window', rate, interval: '1m' }, { place: 'test', name, instance, shadow });

const entriesOf = (...limits: CompiledLimit[]): CheckEntry[] =>
  limits.map((limit) => ({ limit, identity: IDENTITY, cost: 1 }));

describe('a limit of an instance beside one of the cluster', () => {
  const own = limitOf('own', 2, true);
  const shared = limitOf('shared', 2, false);
  let clock: ManualClock;
  let cluster: MemoryStore;
  let mine: MemoryStore;
  let one: ScopedStore;
  let other: ScopedStore;

  beforeEach(() => {
    clock = new ManualClock();
    cluster = new MemoryStore({ clock: clock.now });
    mine = new MemoryStore({ clock: clock.now });
    one = new ScopedStore(cluster, mine);
    other = new ScopedStore(cluster, new MemoryStore({ clock: clock.now }));
  });
  afterEach(() => Promise.all([one.close(), other.close()]));

  const left = (store: Store) =>
    Promise.all([own, shared].map(async (limit) => (await ask(store, limit, { peek: true })).remaining));

  it('is counted by each for itself', async () => {
    for (const store of [one, other]) {
      expect((await ask(store, own, { cost: 2 })).allowed).toBe(true);
      expect((await ask(store, own)).allowed).toBe(false);
    }
    expect(cluster.size).toBe(0);
    await ask(one, shared);
    expect(await left(other)).toEqual([0, 1]);
  });

  it('both are charged, or none', async () => {
    await ask(other, shared);
    expect(await one.check([{ entries: entriesOf(own, shared) }])).toMatchObject([
      [{ allowed: true }, { allowed: true }],
    ]);
    const [refused] = await one.check([{ entries: entriesOf(shared, own) }]);
    expect(refused).toMatchObject([
      { limit: 'shared', allowed: false, remaining: 0 },
      { limit: 'own', allowed: true, remaining: 1 },
    ]);
    expect(await left(one)).toEqual([1, 0]);
  });

  it('nothing is charged to the cluster that the instance refuses', async () => {
    await ask(one, own, { cost: 2 });
    const [refused] = await one.check([{ entries: entriesOf(own, shared) }]);
    expect(refused).toMatchObject([{ allowed: false }, { allowed: true, remaining: 2 }]);
    expect(await left(one)).toEqual([0, 2]);
  });

  it('a shadow of either refuses nothing', async () => {
    const shadows = [limitOf('own-shadow', 1, true, true), limitOf('shared-shadow', 1, false, true)];
    for (let i = 0; i < 2; i++) await one.check([{ entries: entriesOf(own, ...shadows, shared) }]);
    expect(await left(one)).toEqual([0, 0]);
  });

  it('nothing is charged if the cluster cannot be asked, nor by a peek', async () => {
    cluster.check = () => Promise.reject(new RateLimitStoreError('down'));
    await expect(one.check([{ entries: entriesOf(own, shared) }])).rejects.toThrow('down');
    expect((await ask(mine, own, { peek: true })).remaining).toBe(2);
    await expect(one.check([{ entries: entriesOf(own, shared), peek: true }])).rejects.toThrow('down');
    expect((await ask(one, own)).allowed).toBe(true);
  });

  it('is reserved, given back, penalized, blocked and forgotten where it is counted', async () => {
    for (const limit of [own, shared]) {
      const counter = { limit, identity: IDENTITY };
      const store = limit.instance ? mine : cluster;
      const { place, at } = await one.reserve({ ...counter, cost: 1, maxWaitMs: 0 });
      await one.penalize({ ...counter, units: 1 });
      expect((await ask(store, limit, { peek: true })).remaining).toBe(0);
      await one.refund([{ ...counter, units: 1, place, at }]);
      expect((await ask(store, limit, { peek: true })).remaining).toBe(1);
      await one.block(counter, 1000);
      expect((await ask(store, limit)).allowed).toBe(false);
      await one.reset([counter]);
      expect((await ask(store, limit, { peek: true })).remaining).toBe(2);
    }
  });

  it('is held and told of where it is counted', async () => {
    for (const instance of [true, false]) {
      const settings = { place: 'test', name: 'held', instance };
      const held = new CompiledLimit({ algo: 'concurrency', limit: 1, ttl: '1m' }, settings);
      const { place } = await ask(one, held, { identity: IDENTITY });
      const lease = { limit: held, identity: IDENTITY, units: 1, place: place! };
      expect(await one.renew(lease)).toBe(true);
      await one.refund([lease]);
      expect(await one.renew(lease)).toBe(false);
      const slices = new CompiledLimit({ algo: 'sliding-window', rate: 1, interval: '1m', slices: 2 }, settings);
      await ask(one, slices);
      expect((await one.history({ limit: slices, identity: IDENTITY })).map(({ count }) => count)).toEqual([1, 0, 0]);
    }
  });
});
