import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore, RateLimitTimeoutError } from '../../../lib/index.js';
import { outcomeOf, waitingFor } from '../../support/limits/waiting.js';

const KEY = 'user:1';
const START = Date.parse('2026-09-21T10:00:00Z');

beforeEach(() => {
  jest.useFakeTimers({ now: START });
});
afterEach(() => {
  jest.useRealTimers();
});

const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms);

const most = { 'leaky-bucket': 'queue', 'token-bucket': 'burst', gcra: 'burst' } as const;

/** A rate, and a burst or a queue of `burst` units. */
const optionsOf = (algo: string, rate: number, interval: number, burst = rate): AlgorithmOptions =>
  algo in most
    ? ({ algo, rate, interval, [most[algo as keyof typeof most]]: burst } as AlgorithmOptions)
    : ({ algo, rate, interval } as AlgorithmOptions);

const intervally = (rate: number): AlgorithmOptions => {
  return { algo: 'token-bucket', rate, interval: 1000, burst: rate, refill: 'intervally' };
};

const reserving = ['gcra', 'token-bucket', 'leaky-bucket'];
const windows = ['sliding-log', 'sliding-window', 'fixed-window'];

describe('a limit that changes under waiting calls', () => {
  it.each(reserving)('%s: keeps to a slower rate from then on, for new calls as well', async (algo) => {
    const store = new MemoryStore();
    const { limiter, change } = waitingFor(store, optionsOf(algo, 100, 1000, 60));
    await limiter.consume(KEY, algo === 'leaky-bucket' ? 10 : 60);
    const outcomes = Array.from({ length: 50 }, () => outcomeOf(limiter.acquire(KEY)));
    await advance(105);
    const changed = Date.now();
    change(optionsOf(algo, 5, 1000, 2));
    const acts: number[] = [];
    for (let i = 0; i < 2000 && outcomes.some(({ at }) => at === undefined); i++) {
      await advance(20);
      if (algo !== 'leaky-bucket' && (await limiter.consume(KEY)).allowed) acts.push(Date.now());
    }
    acts.push(...outcomes.flatMap(({ at }) => (at !== undefined && at > changed ? at : [])));
    acts.sort((one, other) => one - other);
    // One unit each 200 ms, and the burst.
    const tooMany = acts.filter((to, last) =>
      acts.some((from, first) => first <= last && last - first + 1 > 2 + (to - from) / 200),
    );
    expect(tooMany).toEqual([]);
    // The wait is no longer than for the units that the larger burst used of the smaller one.
    const waiting = outcomes.filter(({ at }) => at! > changed).length;
    expect(waiting).toBeGreaterThan(30);
    expect(Math.max(...acts) - changed).toBeLessThanOrEqual(200 * (waiting + (algo === 'leaky-bucket' ? 2 : 60)));
    await store.close();
  });

  it.each([...reserving, ...windows])('%s: releases calls at a faster rate', async (algo) => {
    const store = new MemoryStore();
    const { limiter, change } = waitingFor(store, optionsOf(algo, 10, 3_600_000));
    await limiter.consume(KEY, 10);
    const outcomes = Array.from({ length: 5 }, () => outcomeOf(limiter.acquire(KEY)));
    await advance(0);
    expect(outcomes).toEqual([{}, {}, {}, {}, {}]);
    change(optionsOf(algo, 10, 1000));
    await advance(2000);
    expect(outcomes.map(({ value }) => value?.allowed)).toEqual([true, true, true, true, true]);
    await store.close();
  });

  it('concurrency: releases calls at once under a larger limit', async () => {
    const store = new MemoryStore();
    const { limiter, change } = waitingFor(store, { algo: 'concurrency', limit: 1, ttl: '1h' });
    await limiter.consume(KEY);
    const outcomes = Array.from({ length: 3 }, () => outcomeOf(limiter.acquire(KEY)));
    await advance(0);
    change({ algo: 'concurrency', limit: 3, ttl: '1h' });
    await advance(0);
    expect(outcomes.map(({ value }) => value?.allowed)).toEqual([true, true, undefined]);
    await store.close();
  });

  it('token-bucket that refills at intervals: releases no more calls together than its refill', async () => {
    const store = new MemoryStore();
    const { limiter, change } = waitingFor(store, intervally(20));
    await limiter.consume(KEY, 20);
    const outcomes = Array.from({ length: 40 }, () => outcomeOf(limiter.acquire(KEY)));
    await advance(500);
    change(intervally(5));
    const gone = () => outcomes.filter(({ at }) => at !== undefined).length;
    let before = 0;
    for (let second = 0; second < 12; second++) {
      await advance(1000);
      expect(gone() - before).toBeLessThanOrEqual(5);
      before = gone();
    }
    expect(before).toBe(40);
    await store.close();
  });

  it.each(reserving)('%s: rejects calls at once whose wait becomes longer than their timeout', async (algo) => {
    const store = new MemoryStore();
    const { limiter, change } = waitingFor(store, optionsOf(algo, 10, 1000, 10));
    await limiter.consume(KEY, 10);
    const [hasty, patient] = [{ timeout: 1000 }, {}].map((options) => outcomeOf(limiter.acquire(KEY, options)));
    await advance(0);
    change(optionsOf(algo, 10, 60_000, 10));
    await advance(0);
    expect(hasty!.reason).toBeInstanceOf(RateLimitTimeoutError);
    expect(hasty!.reason).toMatchObject({ decision: { allowed: false } });
    // The call behind it moves up.
    await advance(algo === 'leaky-bucket' ? 60_000 : 6000);
    expect(patient).toMatchObject({ value: { allowed: true } });
    await store.close();
  });

  it.each([...reserving, 'sliding-log'])('%s: restarts the wait with fresh counters', async (algo) => {
    const store = new MemoryStore();
    const { limiter, change } = waitingFor(store, optionsOf(algo, 10, 3_600_000, 9));
    await limiter.consume(KEY, 9);
    const outcomes = Array.from({ length: 9 }, () =>
      outcomeOf(limiter.acquire(KEY, { cost: algo === 'leaky-bucket' ? 1 : 2 })),
    );
    await advance(0);
    change(optionsOf(algo, 10, 1000, 9), { generation: 1 });
    await advance(2000);
    expect(outcomes.filter(({ value }) => value?.allowed === true)).toHaveLength(9);
    await store.close();
  });

  it.each([...reserving, 'sliding-log'])('%s: restarts the wait at a reset', async (algo) => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf(algo, 10, 1000, 9));
    await limiter.consume(KEY, 9);
    const outcomes = Array.from({ length: 9 }, () => outcomeOf(limiter.acquire(KEY)));
    await advance(0);
    const reset = limiter.reset(KEY);
    const late = outcomeOf(reset.then(() => limiter.acquire(KEY)));
    await advance(algo === 'leaky-bucket' ? 900 : 0);
    expect(outcomes.every(({ value }) => value !== undefined)).toBe(true);
    const times = outcomes.map(({ at }) => at! - START);
    expect(times).toEqual(
      algo === 'leaky-bucket' ? [0, 1, 2, 3, 4, 5, 6, 7, 8].map((n) => n * 100) : times.map(() => 0),
    );
    await advance(1000);
    expect(late.value).toMatchObject({ allowed: true });
    await store.close();
  });

  it.each(reserving)('%s: keeps timeouts after a reset and a block', async (algo) => {
    const store = new MemoryStore();
    const { limiter, queues } = waitingFor(store, optionsOf(algo, 10, 1000, 9));
    await limiter.consume(KEY, 9);
    const hasty = outcomeOf(limiter.acquire(KEY, { timeout: 2000 }));
    await advance(0);
    await limiter.block(KEY, 1500);
    queues.restart({ limit: limiter.rule.limit, identity: KEY });
    await advance(10);
    await limiter.block(KEY, '1h');
    await advance(2000);
    expect(hasty.reason).toBeInstanceOf(RateLimitTimeoutError);
    await queues.onModuleDestroy();
    await store.close();
  });
});
