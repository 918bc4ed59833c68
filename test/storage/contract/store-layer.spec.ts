import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, type Store } from '../../../lib/index.js';
import type { Charge } from '../../../lib/testing/store/index.js';
import { READ } from '../../../lib/storage/stores/feature-reading.js';
import { DeadlineStore } from '../../../lib/storage/stores/layers/deadline.store.js';
import { StoreLayer } from '../../../lib/storage/stores/layers/store-layer.js';
import type { Operation, OperationAnswer, OperationName } from '../../../lib/storage/stores/operation.js';
import { ask, compile } from '../../support/limits/stores.js';

/** What a store may do or not. */
const OPTIONAL = ['nodeOf', 'slotOf', 'hasNode', 'blockedFor', 'credit', 'learn'] as const;

class Plain extends StoreLayer {}

/** A store that writes down what it is asked, and answers by the name of the call. */
function told(calls: unknown[][]): Store {
  return new Proxy({} as Store, {
    get:
      (_, name) =>
      (...given: unknown[]) => {
        calls.push([name, ...given]);
        if (name === 'check') return Promise.resolve([[{ allowed: true }]]);
        return Promise.resolve(name === 'reserve' ? { allowed: true } : name);
      },
  });
}

describe('a layer', () => {
  it('hands on every call that it does not change', async () => {
    const calls: unknown[][] = [];
    const layer = new Plain(told(calls)) as unknown as Record<PropertyKey, (...given: unknown[]) => unknown>;
    const check = { entries: ['entry'] };
    expect(await layer['check']!([check])).toEqual([[{ allowed: true }]]);
    expect(await layer['reserve']!('given')).toEqual({ allowed: true });
    const one = ['refund', 'penalize', 'renew', 'reset', 'history', 'nodeOf', 'slotOf', 'hasNode', 'blockedFor'];
    const several = ['block', READ, 'learn'];
    for (const name of [...one, 'credit']) expect(await layer[name]!('given')).toBe(name);
    for (const name of several) expect(await layer[name]!('given', 5)).toBe(name);
    await layer['open']!();
    await layer['close']!();
    expect(calls).toEqual([
      ['check', [check]],
      ['reserve', 'given'],
      ...[...one, 'credit'].map((name) => [name, 'given']),
      ...several.map((name) => [name, 'given', 5]),
      ['open'],
      ['close'],
    ]);
  });

  it('can do nothing that the store below cannot', async () => {
    const unable = Object.fromEntries(OPTIONAL.map((name) => [name, undefined]));
    const layer = new Plain(Object.assign(new MemoryStore(), unable));
    for (const name of OPTIONAL) expect([name, layer[name]]).toEqual([name, undefined]);
    await expect(layer.open()).resolves.toBeUndefined();
    await layer.close();
  });

  it('asks a layer that is put below it later', async () => {
    class Doubling extends StoreLayer {
      override operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
        const charges = operation.counters as readonly Charge[];
        return super.operate({ ...operation, counters: charges.map((each) => ({ ...each, units: 2 * each.units })) });
      }
    }
    const limit = compile({ algo: 'fixed-window', rate: 9, interval: '1h' });
    const charge = { limit, identity: 'ip:203.0.113.7', units: 2 };
    const layer = new Plain(new MemoryStore());
    await layer.penalize(charge);
    layer.insert((inner) => new Doubling(inner));
    await layer.penalize(charge);
    // What was counted before is counted still.
    expect(await ask(layer, limit, { peek: true })).toMatchObject({ remaining: 3 });
    await layer.close();
  });

  it('is observed by nobody, unless it says otherwise', () => {
    const layer = new Plain(new MemoryStore());
    expect(layer.unobserved).toBe(layer);
  });

  it('tells whether a layer below leaves its store alone, if one can', async () => {
    class Broken extends StoreLayer {
      probes = 0;
      override get isBroken() {
        return true;
      }
      override async probe() {
        this.probes++;
      }
    }
    const broken = new Broken(new MemoryStore());
    const layer = new Plain(broken);
    expect([layer.isBroken, new Plain(new MemoryStore()).isBroken]).toEqual([true, undefined]);
    await layer.probe();
    await new Plain(new MemoryStore()).probe();
    expect(broken.probes).toBe(1);
  });
});

const TIMEOUT_MS = 250;
const slots = compile({ algo: 'concurrency', limit: 5, ttl: '1m' }, 'slots');
const counter = { limit: slots, identity: 'user:1' };
const entry = { ...counter, cost: 1 };

const never = () => new Promise<never>(() => undefined);

const calls: Record<string, (store: Store) => Promise<unknown>> = {
  check: (store) => store.check([{ entries: [entry] }]),
  reserve: (store) => store.reserve({ ...entry, maxWaitMs: 0 }),
  refund: (store) => store.refund([{ ...counter, units: 1 }]),
  penalize: (store) => store.penalize({ ...counter, units: 1 }),
  block: (store) => store.block(counter, 1000),
  renew: (store) => store.renew({ ...counter, units: 1, ticket: 1 }),
  reset: (store) => store.reset([counter]),
  blockedFor: (store) => store.blockedFor!(counter),
};

describe.each(Object.keys(calls))('%s of a subclass of a store of ours', (method) => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('has a deadline if the subclass overrides it', async () => {
    const own = Object.assign(new MemoryStore(), { [method]: never });
    const asked = expect(calls[method]!(new DeadlineStore(own, TIMEOUT_MS, MemoryStore))).rejects.toThrow(
      `the store did not answer within ${TIMEOUT_MS} ms`,
    );
    await jest.advanceTimersByTimeAsync(TIMEOUT_MS);
    await asked;
    await own.close();
  });

  it('starts no timer if the subclass leaves it as it is', async () => {
    class Own extends MemoryStore {}
    const own = new Own();
    const deadlines = jest.spyOn(globalThis, 'setTimeout');
    const asked = calls[method]!(new DeadlineStore(own, TIMEOUT_MS, MemoryStore)).catch(() => undefined);
    expect(deadlines.mock.calls.filter(([, ms]) => ms === TIMEOUT_MS)).toEqual([]);
    await asked;
    await own.close();
  });
});
