import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type AlgorithmOptions, type AcquireOptions, MemoryStore } from '../../../lib/index.js';
import { waitingFor } from '../../support/limits/waiting.js';

const KEY = 'user:1';
/** The time between two units, in milliseconds. */
const T = 10;
const CALLS = 60;
const WITHOUT_END = { timeoutMs: Infinity, signal: undefined };
const all = Array.from({ length: CALLS }, (_, index) => index);

const algorithms: Record<string, AlgorithmOptions> = {
  'leaky-bucket': { algo: 'leaky-bucket', rate: 100, interval: '1s', queue: 20 },
  gcra: { algo: 'gcra', rate: 100, interval: '1s', burst: 20 },
  'token-bucket': { algo: 'token-bucket', rate: 100, interval: '1s', burst: 20 },
  'fixed-window': { algo: 'fixed-window', rate: 20, interval: '200ms' },
  'sliding-window': { algo: 'sliding-window', rate: 20, interval: '200ms' },
  'sliding-log': { algo: 'sliding-log', rate: 20, interval: '200ms' },
  concurrency: { algo: 'concurrency', limit: 20, ttl: '1h' },
};

const costs: Record<string, (index: number) => number> = {
  'one unit each': () => 1,
  'one to three units': (index) => ((index * 7) % 3) + 1,
  'one or ten units': (index) => (index % 4 === 1 ? 10 : 1),
};

/** Calls that give up. */
const leaves = (index: number) => index % 5 === 3;

/** Counts in process, by a clock that moves on while a line of calls is asked for: a tenth of a unit each time. */
function movingStore(): MemoryStore {
  let passed = 0;
  return new MemoryStore({ clock: () => Date.now() * 1000 + (passed += T * 100) });
}

describe.each(Object.keys(algorithms))('calls of a process for %s', (algo) => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Makes calls at once, and returns them in the order in which they went on. */
  async function orderOf(optionsOf: (index: number) => AcquireOptions, between = async () => {}): Promise<number[]> {
    const store = movingStore();
    const { limiter } = waitingFor(store, algorithms[algo]!);
    const order: number[] = [];
    for (let index = 0; index < CALLS; index++) {
      void limiter.acquire(KEY, optionsOf(index)).then(
        (decision) => {
          order.push(index);
          setTimeout(() => void decision.lease?.release(), T * (index % 3));
          return undefined;
        },
        () => {},
      );
    }
    await jest.advanceTimersByTimeAsync(20 * T);
    await between();
    await jest.advanceTimersByTimeAsync(20 * CALLS * T);
    await store.close();
    return order;
  }

  it.each(Object.keys(costs))('go on in order, of %s', async (name) => {
    expect(await orderOf((index) => ({ cost: costs[name]!(index) }))).toEqual(all);
  });

  it.each(Object.keys(costs))('go on in order with enough time, of %s', async (name) => {
    expect(await orderOf((index) => ({ cost: costs[name]!(index), timeout: '1h' }))).toEqual(all);
  });

  it.each(Object.keys(costs))('go on in order after others gave up, of %s', async (name) => {
    const leaving = new AbortController();
    const order = await orderOf(
      (index) => ({ cost: costs[name]!(index), ...(leaves(index) && { signal: leaving.signal }) }),
      async () => leaving.abort(new Error('enough')),
    );
    const early = order.filter(leaves);
    const stayed = all.filter((index) => !leaves(index) || early.includes(index));
    expect(order).toHaveLength(stayed.length);
    // Calls for as many units move up.
    for (const cost of new Set(all.map(costs[name]!))) {
      const isAlike = (index: number) => costs[name]!(index) === cost;
      expect(order.filter(isAlike)).toEqual(stayed.filter(isAlike));
    }
  });
});

/** Calls that take units of all their limits at once: of several levels, and to others' APIs. */
describe('calls of a process for a leaky-bucket and another limit', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['one unit each', 0],
    ['one unit each', 3],
    ['one to three units', 0],
    ['one to three units', 3],
  ] as const)('go on in order, of %s, after %d gave up', async (name, gaveUp) => {
    const store = movingStore();
    const { queues, rule } = waitingFor(store, algorithms['leaky-bucket']!);
    const other = waitingFor(store, { algo: 'fixed-window', rate: 1000, interval: '1h' }).rule;
    const order: number[] = [];
    const aborts = all.map(() => new AbortController());
    for (const index of all) {
      const cost = costs[name]!(index);
      const entries = [rule, other].map(({ limit }) => ({ limit, identity: KEY, cost }));
      const { signal } = aborts[index]!;
      const waiting = queues.wait({ rules: [rule, other], entries: () => entries }, { timeoutMs: Infinity, signal });
      void waiting.then(
        () => order.push(index),
        () => {},
      );
    }
    await jest.advanceTimersByTimeAsync(3 * T);
    const gone = all.filter((index) => !order.includes(index)).slice(2, 2 + gaveUp);
    for (const index of gone) aborts[index]!.abort(new Error('enough'));
    await jest.advanceTimersByTimeAsync(20 * CALLS * T);
    await store.close();
    const stayed = all.filter((index) => !gone.includes(index));
    expect(order).toHaveLength(stayed.length);
    for (const cost of gaveUp === 0 ? [] : new Set(all.map(costs[name]!))) {
      const isAlike = (index: number) => costs[name]!(index) === cost;
      expect(order.filter(isAlike)).toEqual(stayed.filter(isAlike));
    }
    if (gaveUp === 0) expect(order).toEqual(all);
  });
});

describe('calls whose place is due at once', () => {
  it.each([
    ['alone', [1, 1, 1]],
    ['alone', [1, 2, 1]],
    ['next to another limit', [1, 1, 1]],
    ['next to another limit', [1, 2, 1]],
  ] as const)('do not overtake calls whose timer is late: %s, of %p units', async (where, units) => {
    let passed = 0;
    const start = Date.now() * 1000;
    const store = new MemoryStore({ clock: () => start + passed });
    const { queues, rule } = waitingFor(store, algorithms['leaky-bucket']!);
    const other = waitingFor(store, { algo: 'fixed-window', rate: 1000, interval: '1h' }).rule;
    const rules = where === 'alone' ? [rule] : [rule, other];
    const order: number[] = [];
    const wait = async (index: number, cost: number): Promise<void> => {
      const entries = rules.map(({ limit }) => ({ limit, identity: KEY, cost }));
      await queues.wait({ rules, entries: () => entries, mayReserve: where === 'alone' }, WITHOUT_END);
      order.push(index);
    };
    const calls = [wait(0, units[0]), wait(1, units[1])];
    await turn();
    // No timer runs before the last call is asked for.
    passed += 100 * T * 1000;
    calls.push(wait(2, units[2]));
    await Promise.all(calls);
    expect(order).toEqual([0, 1, 2]);
    await store.close();
  });
});
