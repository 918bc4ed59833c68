import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { ask, compile } from '../../support/limits/stores.js';

async function used(store: MemoryStore, limit: CompiledLimit, identity: string): Promise<number> {
  const { quota, remaining } = await ask(store, limit, { identity, peek: true });
  return quota - remaining;
}

function noTime(): number {
  throw new Error('no time');
}

describe('the bound of a MemoryStore', () => {
  const limit = compile({ algo: 'fixed-window', rate: 10, interval: '1h' });

  it('keeps maxKeys counters, and forgets the one that was charged longest ago', async () => {
    const store = new MemoryStore({ maxKeys: 3 });
    for (const identity of ['a', 'b', 'c', 'd']) await ask(store, limit, { identity });
    expect(store.size).toBe(3);
    expect(await used(store, limit, 'a')).toBe(0);
    for (const identity of ['b', 'c', 'd']) expect(await used(store, limit, identity)).toBe(1);
    await store.close();
  });

  it.each([
    ['charged', { cost: 1 }, 2],
    ['looked at', { peek: true }, 1],
    ['refused', { cost: 10 }, 1],
  ])('keeps a counter that was %s again', async (_, again, units) => {
    const store = new MemoryStore({ maxKeys: 3 });
    for (const identity of ['a', 'b', 'c']) await ask(store, limit, { identity });
    await ask(store, limit, { identity: 'a', ...again });
    await ask(store, limit, { identity: 'd' });
    expect(store.size).toBe(3);
    expect(await used(store, limit, 'a')).toBe(units);
    expect(await used(store, limit, 'b')).toBe(0);
    await store.close();
  });

  it('never holds more, however many ask', async () => {
    const store = new MemoryStore({ maxKeys: 50 });
    for (let i = 0; i < 2000; i++) {
      await ask(store, limit, { identity: `user:${i}` });
      expect(store.size).toBeLessThanOrEqual(50);
    }
    expect(store.size).toBe(50);
    expect(await used(store, limit, 'user:1999')).toBe(1);
    await store.close();
  });

  it('keeps nothing of those that only look', async () => {
    const store = new MemoryStore();
    await ask(store, limit, { peek: true });
    expect(store.size).toBe(0);
    await store.close();
  });
});

describe('the sweep of a MemoryStore', () => {
  const short = compile({ algo: 'fixed-window', rate: 10, interval: '2s' }, 'short');
  const long = compile({ algo: 'fixed-window', rate: 10, interval: '10s' }, 'long');

  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('has one timer for all counters, and none before the first', async () => {
    const store = new MemoryStore();
    expect(jest.getTimerCount()).toBe(0);
    for (let i = 0; i < 100; i++) await ask(store, short, { identity: `user:${i}` });
    expect(jest.getTimerCount()).toBe(1);
    await store.close();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('forgets what has run out, and ends when nothing is left', async () => {
    const store = new MemoryStore();
    for (let i = 0; i < 100; i++) await ask(store, short, { identity: `user:${i}` });
    await ask(store, long);
    jest.advanceTimersByTime(1000);
    expect(store.size).toBe(101);
    jest.advanceTimersByTime(2000);
    expect(store.size).toBe(1);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(8000);
    expect(store.size).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('forgets a block when its offences are forgotten', async () => {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    const limit = new CompiledLimit(
      { algo: 'fixed-window', rate: 1, interval: '1s' },
      { location: 'test', escalation: { steps: [60_000_000], forgetAfter: 3_600_000_000 } },
    );
    await ask(store, limit, { cost: 2 });
    for (const [ms, kept] of [
      [61 * 60_000 - 1, 1],
      [1, 0],
    ] as const) {
      clock.advance(ms);
      jest.advanceTimersByTime(1000);
      expect(store.size).toBe(kept);
    }
    await store.close();
  });

  it('begins again with the next counter', async () => {
    const store = new MemoryStore();
    await ask(store, short);
    jest.advanceTimersByTime(5000);
    expect(jest.getTimerCount()).toBe(0);
    await ask(store, short);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(5000);
    expect(store.size).toBe(0);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('looks at a part of maxKeys at a time, and gets round to all of them', async () => {
    const store = new MemoryStore({ maxKeys: 100 });
    for (let i = 0; i < 100; i++) await ask(store, short, { identity: `user:${i}` });
    jest.advanceTimersByTime(3000);
    expect(store.size).toBeGreaterThan(50);
    jest.advanceTimersByTime(20_000);
    expect(store.size).toBe(0);
  });

  it('does not keep the process alive', async () => {
    jest.useRealTimers();
    const start = jest.spyOn(globalThis, 'setInterval');
    const store = new MemoryStore();
    await ask(store, short);
    expect(start).toHaveBeenCalledTimes(1);
    expect((start.mock.results[0]!.value as NodeJS.Timeout).hasRef()).toBe(false);
    await store.close();
  });
});

describe('what has run out in a MemoryStore', () => {
  it('is gone for a token bucket that grew', async () => {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    await ask(store, compile({ algo: 'token-bucket', rate: 5, interval: '1s', burst: 5 }, 'same'));
    clock.advance(200 + 400);
    const larger = compile({ algo: 'token-bucket', rate: 5, interval: '1s', burst: 50 }, 'same');
    await expect(ask(store, larger)).resolves.toMatchObject({ allowed: true, remaining: 49 });
    await store.close();
  });

  it('is still there a moment before', async () => {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    await ask(store, compile({ algo: 'token-bucket', rate: 5, interval: '1s', burst: 5 }, 'same'));
    clock.advance(199);
    const larger = compile({ algo: 'token-bucket', rate: 5, interval: '1s', burst: 50 }, 'same');
    await expect(ask(store, larger)).resolves.toMatchObject({ allowed: true, remaining: 3 });
    await store.close();
  });

  it('is gone for a sliding log that grew', async () => {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    const small = compile({ algo: 'sliding-log', rate: 5, interval: 200 }, 'same');
    for (let i = 0; i < 5; i++) await ask(store, small);
    clock.advance(200);
    const larger = compile({ algo: 'sliding-log', rate: 5, interval: '20s' }, 'same');
    await expect(ask(store, larger)).resolves.toMatchObject({ allowed: true, remaining: 4 });
    await store.close();
  });

  it('is gone for a sliding log a moment before only in part', async () => {
    const clock = new TestClock();
    const store = createTestingStore({ clock });
    const small = compile({ algo: 'sliding-log', rate: 5, interval: 200 }, 'same');
    for (let i = 0; i < 4; i++) await ask(store, small);
    clock.advance(199);
    const larger = compile({ algo: 'sliding-log', rate: 5, interval: '20s' }, 'same');
    await expect(ask(store, larger)).resolves.toMatchObject({ allowed: true, remaining: 0 });
    await store.close();
  });
});

describe('a call of a MemoryStore that fails', () => {
  it('rejects, and does not throw', async () => {
    const store = new MemoryStore({ clock: noTime });
    const limit = compile({ algo: 'fixed-window', rate: 1, interval: '1h' });
    const checking = store.check([{ entries: [{ limit, identity: 'user:1', cost: 1 }] }]);
    await expect(checking).rejects.toThrow('no time');
  });

  it('rejects where a limit keeps no history', async () => {
    const store = new MemoryStore();
    const limit = compile({ algo: 'gcra', rate: 1, interval: '1s' });
    await expect(store.history({ limit, identity: 'a' })).rejects.toThrow(
      "limit 'gcra:1/1s' keeps no history. Use algo 'calendar-window', 'budget' or 'sliding-window'",
    );
  });
});
