import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { ask, type CarryOver, ManualClock } from '../../support/limits/stores.js';

const identity = 'user:42';

let clock: ManualClock;
let store: MemoryStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryStore({ clock: clock.now });
});
afterEach(() => store.close());

const optionsOf: Record<string, (units: number) => AlgorithmOptions> = {
  'fixed-window': (rate) => ({ algo: 'fixed-window', rate, interval: '1h' }),
  'calendar-window': (rate) => ({ algo: 'calendar-window', rate, period: 'year' }),
  'sliding-window': (rate) => ({ algo: 'sliding-window', rate, interval: '1h' }),
  'sliding-log': (rate) => ({ algo: 'sliding-log', rate, interval: '1h' }),
  'token-bucket': (burst) => ({ algo: 'token-bucket', rate: 1, interval: '1h', burst }),
  gcra: (burst) => ({ algo: 'gcra', rate: 1, interval: '1h', burst }),
};

const limitOf = (algo: string, units: number, mode?: CarryOver['mode'], quotaBefore = 10) => {
  const carry = mode && { mode, quotaBefore };
  return new CompiledLimit(optionsOf[algo]!(units), { location: 'test', name: 'one', carry });
};

const slots = (limit: number, carry?: CarryOver) =>
  new CompiledLimit({ algo: 'concurrency', limit, ttl: '1h' }, { location: 'test', name: 'one', carry });

const remaining = async (limit: CompiledLimit) => (await ask(store, limit, { identity, peek: true })).remaining;

describe.each(Object.keys(optionsOf))('what was used of a %s before its quota changed', (algo) => {
  const before = limitOf(algo, 10);

  it('grows with the quota, in whole units', async () => {
    await ask(store, before, { identity, cost: 3 });
    const limit = limitOf(algo, 25, 'proportional');
    expect(await remaining(limit)).toBe(17);
    await ask(store, limit, { identity });
    // It has grown once.
    expect(await remaining(limit)).toBe(16);
    await ask(store, limit, { identity });
    expect(await remaining(limit)).toBe(15);
  });

  it('stays, and as much more is left as the quota has grown by', async () => {
    await ask(store, before, { identity, cost: 3 });
    const limit = limitOf(algo, 25, 'additive');
    expect(await remaining(limit)).toBe(22);
    await ask(store, limit, { identity });
    expect(await remaining(limit)).toBe(21);
    await ask(store, limit, { identity });
    expect(await remaining(limit)).toBe(20);
  });

  it.each(['proportional', 'additive'] as const)('is all of the quota if it was (%s)', async (mode) => {
    await ask(store, before, { identity, cost: 10 });
    expect(await remaining(limitOf(algo, 25, mode))).toBe(mode === 'additive' ? 15 : 0);
  });

  it.each(['proportional', 'additive'] as const)(
    'is the same debt if it was more than the quota (%s)',
    async (mode) => {
      await store.penalize({ limit: before, identity, units: 14 });
      const limit = limitOf(algo, 25, mode);
      expect(await remaining(limit)).toBe(0);
      await store.refund([{ limit, identity, units: 3 }]);
      expect(await remaining(limit)).toBe(0);
      await store.refund([{ limit, identity, units: 2 }]);
      expect(await remaining(limit)).toBe(1);
    },
  );

  it.each(['proportional', 'additive'] as const)('is no less under a smaller quota (%s)', async (mode) => {
    await ask(store, before, { identity, cost: 3 });
    expect(await remaining(limitOf(algo, 5, mode))).toBe(2);
  });

  it('is nothing if nothing was used', async () => {
    expect(await remaining(limitOf(algo, 25, 'proportional'))).toBe(25);
  });
});

describe('what is held of a limit of concurrency', () => {
  it('is the same under any quota', async () => {
    await ask(store, slots(10), { identity, cost: 4 });
    expect(await remaining(slots(20, { mode: 'proportional', quotaBefore: 10 }))).toBe(16);
  });
});
