import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore } from '../../../../lib/index.js';
import type { ReserveEntry, StoreDecision } from '../../../../lib/testing/store/index.js';
import { outcomeOf, waitingFor } from '../../../support/limits/waiting.js';

const KEY = 'global';
const bucket: AlgorithmOptions = { algo: 'token-bucket', rate: 10, interval: 1000 };

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const done = (outcomes: readonly { value?: unknown }[]) => outcomes.filter(({ value }) => value !== undefined).length;
const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms);

/** Takes a turn of the event loop for each call. */
class CountingStore extends MemoryStore {
  calls = 0;

  override async reserve(entry: ReserveEntry): Promise<StoreDecision> {
    this.calls++;
    await new Promise((resolve) => setImmediate(resolve));
    return super.reserve(entry);
  }
}

describe('tenants that wait', () => {
  it('do not wait behind each other', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, bucket, {});
    const of = (share: string, count: number) =>
      Array.from({ length: count }, () => outcomeOf(limiter.acquire(KEY, { share })));
    const greedy = of('greedy', 60);
    await advance(0);
    const modest = of('modest', 5);
    await advance(3000);
    expect(done(modest)).toBe(5);
    expect(done(greedy)).toBeGreaterThanOrEqual(30);
    expect(done(greedy)).toBeLessThanOrEqual(35);
    await store.close();
  });

  it('are woken by units of another one that come back', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, { ...bucket, interval: '1h' }, {});
    await limiter.consume(KEY, { share: 'a', cost: 10 });
    const waiting = outcomeOf(limiter.acquire(KEY, { share: 'b' }));
    await advance(0);
    expect(waiting).toEqual({});
    await limiter.refund(KEY, 2);
    await advance(0);
    expect(waiting.value).toMatchObject({ allowed: true });
    await store.close();
  });

  it('ask for their weight once', async () => {
    const store = new MemoryStore();
    let asked = 0;
    const weight = () => {
      if (asked++ > 0) throw new Error('the table of plans is gone');
      return 2;
    };
    const { limiter } = waitingFor(store, bucket, { weight });
    await limiter.consume(KEY, { share: 'a', cost: 10 });
    asked = 0;
    const waiting = outcomeOf(limiter.acquire(KEY, { share: 'a' }));
    await advance(2000);
    expect(waiting.value).toMatchObject({ allowed: true });
    await expect(limiter.acquire(KEY, { share: 'a' })).rejects.toThrow('the table of plans is gone');
    await store.close();
  });

  it('ask the store no more often where they are many', async () => {
    const store = new CountingStore();
    const { limiter, queues } = waitingFor(store, { ...bucket, interval: '1h' }, {});
    await limiter.consume(KEY, { share: 'a', cost: 10 });
    const tenants = 2500;
    const waiting = Array.from({ length: tenants }, (_, index) =>
      outcomeOf(limiter.acquire(KEY, { share: `t${index}` })),
    );
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(store.calls).toBe(tenants);
    await queues.onModuleDestroy();
    await advance(0);
    expect(waiting.every(({ reason }) => reason instanceof Error)).toBe(true);
    await store.close();
  });
});
