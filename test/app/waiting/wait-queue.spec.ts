import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { type AlgorithmOptions, type Decision, MemoryStore, type Reservation } from '../../../lib/index.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { outcomeOf, waitingFor } from '../../support/limits/waiting.js';

const RUNS = propertyRuns(60);
const KEY = 'user:1';
const START = Date.parse('2026-09-21T10:00:00Z');
/** The time between two units, in milliseconds. */
const T = 100;

type Algo = 'gcra' | 'token-bucket' | 'leaky-bucket';
const algos: Algo[] = ['gcra', 'token-bucket', 'leaky-bucket'];

/** One unit every `T`, and a burst or a queue of `quota` units. */
const optionsOf = (algo: Algo, quota: number): AlgorithmOptions =>
  algo === 'leaky-bucket'
    ? { algo, rate: 10, interval: 10 * T, queue: quota - 1 }
    : { algo, rate: 10, interval: 10 * T, burst: quota };

beforeEach(() => {
  jest.useFakeTimers({ now: START });
});
afterEach(() => {
  jest.useRealTimers();
});

const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms);
/** Runs all pending microtasks and due timers. */
const settled = () => advance(0);

/** Units that are used at a time. */
interface Act {
  readonly time: number;
  readonly units: number;
}

/** Pairs of acts with more units in between than a stretch of time allows, or than a queue lets leave. */
function tooMany(algo: Algo, quota: number, acts: readonly Act[]): Act[][] {
  const sorted = acts.toSorted((one, other) => one.time - other.time);
  return sorted.flatMap((from, index) => {
    let units = algo === 'leaky-bucket' ? 0 : from.units;
    return sorted.slice(index + 1).flatMap((to) => {
      units += to.units;
      const most = (algo === 'leaky-bucket' ? 0 : quota) + (to.time - from.time) / T;
      return units > most ? [[from, to]] : [];
    });
  });
}

describe.each(algos)('%s', (algo) => {
  const step = fc.record({
    kind: fc.constantFrom('acquire', 'acquire', 'acquire', 'abort', 'abort', 'consume', 'reserve', 'cancel', 'settle'),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 4 })),
    which: fc.double({ min: 0, max: 0.999, noNaN: true }),
    timeout: fc.option(fc.integer({ min: 0, max: 20 * T }), { nil: undefined }),
    ms: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3 * T })),
  });

  it('allows no more units than its rate, after any waits, aborts, reservations and refunds', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 4, max: 9 }),
        fc.array(step, { minLength: 1, maxLength: 50 }),
        async (quota, steps) => {
          const store = new MemoryStore();
          const { limiter, queues } = waitingFor(store, optionsOf(algo, quota));
          const acts: Act[] = [];
          const waiting: { abort: AbortController; cost: number; outcome: { value?: Decision; at?: number } }[] = [];
          const reserved: { reservation: Reservation; cost: number; time: number; units: number }[] = [];
          try {
            for (const { kind, cost, which, timeout, ms } of steps) {
              const now = Date.now();
              if (kind === 'acquire') {
                const abort = new AbortController();
                const { signal } = abort;
                const options = timeout === undefined ? { cost, signal } : { cost, signal, timeout };
                waiting.push({ abort, cost, outcome: outcomeOf(limiter.acquire(KEY, options)) });
              } else if (kind === 'abort') {
                waiting[Math.floor(which * waiting.length)]?.abort.abort(new Error('enough'));
              } else if (kind === 'consume') {
                const { allowed, delayMs } = await limiter.consume(KEY, cost);
                if (allowed) acts.push({ time: now + delayMs, units: cost });
              } else if (kind === 'reserve') {
                const reservation = await limiter.reserve(KEY, { cost, maxWait: Math.floor(which * 20 * T) });
                const { allowed, delayMs } = reservation;
                if (allowed) reserved.push({ reservation, cost, time: now + delayMs, units: cost });
              } else {
                const one = reserved[Math.floor(which * reserved.length)];
                if (one === undefined || one.units < one.cost || one.time <= now) continue;
                one.units = kind === 'settle' ? Math.floor(which * one.cost) : 0;
                await one.reservation.settle(one.units);
              }
              await advance(ms);
            }
            for (const { abort } of waiting) abort.abort(new Error('enough'));
            await settled();
          } finally {
            await queues.onModuleDestroy();
            await store.close();
          }
          for (const { cost, outcome } of waiting) {
            if (outcome.value !== undefined) acts.push({ time: outcome.at!, units: cost });
          }
          acts.push(...reserved.filter(({ units }) => units > 0));
          expect(tooMany(algo, quota, acts)).toEqual([]);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('keeps no trace of calls that gave up', async () => {
    const waiter = fc.record({
      cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 5 })),
      pause: fc.integer({ min: 0, max: 10 }),
      leaves: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 5 }),
        fc.array(waiter, { minLength: 1, maxLength: 12 }),
        async (used, waiters) => {
          const store = new MemoryStore();
          const { limiter, queues } = waitingFor(store, optionsOf(algo, 5));
          const other = waitingFor(store, optionsOf(algo, 5));
          try {
            for (const key of [KEY, 'user:2']) {
              await limiter.consume(key, 5);
              if (used > 0) await limiter.penalize(key, used);
            }
            const all = waiters.map(() => new AbortController());
            const outcomes = waiters.map(({ cost }, index) =>
              outcomeOf(limiter.acquire(KEY, { cost, signal: all[index]!.signal })),
            );
            await settled();
            const order = waiters.map((_, index) => index).toSorted((a, b) => waiters[a]!.leaves - waiters[b]!.leaves);
            for (const index of order) {
              all[index]!.abort(new Error('enough'));
              await advance(waiters[index]!.pause);
            }
            await settled();
            fc.pre(outcomes.every(({ value }) => value === undefined));
            expect(await limiter.peek(KEY)).toEqual(await limiter.peek('user:2'));
            expect(await limiter.reserve(KEY)).toEqual(await limiter.reserve('user:2'));
            expect(await other.limiter.peek(KEY, 3)).toEqual(await other.limiter.peek('user:2', 3));
          } finally {
            await queues.onModuleDestroy();
            await store.close();
          }
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('moves calls up in order when others give up', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf(algo, 20));
    await limiter.consume(KEY, 20);
    const leaving = new AbortController();
    const outcomes = Array.from({ length: 12 }, (_, index) => ({
      leaves: index % 3 !== 2,
      outcome: outcomeOf(limiter.acquire(KEY, index % 3 !== 2 ? { signal: leaving.signal } : {})),
    }));
    await advance(algo === 'leaky-bucket' ? 19 * T : 0);
    const before = outcomes.filter(({ outcome }) => outcome.value !== undefined).length;
    expect(before).toBe(0);
    leaving.abort(new Error('enough'));
    await advance(5 * T);
    const stayed = outcomes.filter(({ leaves }) => !leaves).map(({ outcome }) => outcome.at! - START);
    const from = algo === 'leaky-bucket' ? 20 * T : T;
    expect(stayed).toEqual([0, 1, 2, 3].map((index) => from + index * T));
    await store.close();
  });

  it('lets a long line go one by one, and takes places of its next second only', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf(algo, 300));
    await limiter.consume(KEY, algo === 'leaky-bucket' ? 1 : 300);
    const outcomes = Array.from({ length: 200 }, (_, index) =>
      outcomeOf(limiter.acquire(KEY, { cost: (index % 3) + 1 })),
    );
    await settled();
    // The places of ten units are a second, and the last one may begin there.
    const { resetAfterMs } = await limiter.peek(KEY);
    expect(resetAfterMs).toBeLessThanOrEqual((algo === 'leaky-bucket' ? 1 : 300) * T + 12 * T);
    expect(resetAfterMs).toBeGreaterThan((algo === 'leaky-bucket' ? 0 : 300) * T);
    await advance(450 * T);
    let units = 0;
    const times = outcomes.map((_, index) => (units += (index % 3) + 1) * T);
    expect(outcomes.map(({ at }) => at! - START)).toEqual(times);
    await store.close();
  });

  it('tells a call at the end of a long line at once that it has no time', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf(algo, 300));
    await limiter.consume(KEY, algo === 'leaky-bucket' ? 1 : 300);
    const patient = Array.from({ length: 100 }, () => outcomeOf(limiter.acquire(KEY)));
    const first = [99, 100, 101, 102].map((times) => outcomeOf(limiter.acquire(KEY, { timeout: times * T })));
    await settled();
    expect(first.slice(0, 2)).toMatchObject([
      { at: START, reason: { decision: { allowed: false, retryAfterMs: 101 * T } } },
      { at: START, reason: { decision: { allowed: false } } },
    ]);
    expect(first.slice(2)).toEqual([{}, {}]);
    await advance(20 * T);
    const later = [82, 83].map((times) => outcomeOf(limiter.acquire(KEY, { timeout: times * T })));
    await settled();
    expect(later).toMatchObject([{ at: START + 20 * T, reason: { decision: { retryAfterMs: 83 * T } } }, {}]);
    await advance(200 * T);
    expect([...patient, ...first.slice(2), later[1]!].map(({ at }) => (at! - START) / T)).toEqual(
      Array.from({ length: 103 }, (_, index) => index + 1),
    );
    await store.close();
  });

  it('refunds a thousand units whose calls gave up', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf(algo, algo === 'leaky-bucket' ? 2000 : 1));
    await limiter.consume(KEY);
    const leaving = new AbortController();
    const { signal } = leaving;
    const outcomes = Array.from({ length: 1000 }, () => outcomeOf(limiter.acquire(KEY, { signal })));
    await settled();
    leaving.abort(new Error('enough'));
    await settled();
    expect(outcomes.every(({ reason }) => reason !== undefined)).toBe(true);
    const next = outcomeOf(limiter.acquire(KEY, { timeout: T }));
    await advance(T);
    expect(next).toMatchObject({ value: { allowed: true }, at: START + T });
    await store.close();
  });
});

describe('leaky-bucket', () => {
  it('asks the store before it refuses a new call, also after a refusal of the first one', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf('leaky-bucket', 3));
    const other = waitingFor(store, optionsOf('leaky-bucket', 3)).limiter;
    const elsewhere = [];
    for (let i = 0; i < 3; i++) elsewhere.push(await other.reserve(KEY));
    const large = outcomeOf(limiter.acquire(KEY, { cost: 3 }));
    await settled();
    await elsewhere[1]!.cancel();
    expect(await limiter.peek(KEY)).toMatchObject({ allowed: true, delayMs: T });
    const small = outcomeOf(limiter.acquire(KEY, { timeout: T }));
    await advance(T);
    expect(small).toMatchObject({ value: { allowed: true }, at: START + T });
    await advance(20 * T);
    expect(large).toMatchObject({ value: { allowed: true }, at: START + 5 * T });
    await store.close();
  });

  it('keeps its spacing when consumed units are refunded', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf('leaky-bucket', 10));
    await limiter.consume(KEY, 3);
    const outcomes = Array.from({ length: 3 }, () => outcomeOf(limiter.acquire(KEY)));
    await settled();
    await limiter.refund(KEY, 2);
    outcomes.push(outcomeOf(limiter.acquire(KEY)));
    await advance(10 * T);
    expect(outcomes.map(({ at }) => (at! - START) / T)).toEqual([1, 2, 3, 4]);
    await store.close();
  });

  it('keeps its spacing after the process was held up', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf('leaky-bucket', 10));
    await limiter.consume(KEY);
    const outcomes = Array.from({ length: 5 }, () => outcomeOf(limiter.acquire(KEY)));
    await settled();
    // No timer runs during that time.
    const now = performance.now.bind(performance);
    const heldUp = jest.spyOn(performance, 'now').mockImplementation(() => now() + 3.5 * T);
    await advance(5 * T);
    const times = outcomes.map(({ at }) => at! - START);
    // A timer is often up to 10 ms late.
    for (const [index, time] of times.slice(1).entries()) expect(time - times[index]!).toBeGreaterThanOrEqual(T - 10);
    expect(times.at(-1)).toBeLessThanOrEqual(5 * T);
    heldUp.mockRestore();
    await store.close();
  });

  it('lets acquire take units that peek allows, before calls that wait for later ones', async () => {
    const store = new MemoryStore();
    const { limiter } = waitingFor(store, optionsOf('leaky-bucket', 10));
    const other = waitingFor(store, optionsOf('leaky-bucket', 10)).limiter;
    const elsewhere = [];
    for (let i = 0; i < 5; i++) elsewhere.push(await other.reserve(KEY));
    const patient = Array.from({ length: 5 }, () => outcomeOf(limiter.acquire(KEY)));
    await settled();
    await elsewhere[2]!.cancel();
    expect(await limiter.peek(KEY)).toMatchObject({ allowed: true, delayMs: 2 * T });
    const impatient = outcomeOf(limiter.acquire(KEY, { timeout: 2 * T }));
    await advance(2 * T);
    expect(impatient).toMatchObject({ value: { allowed: true }, at: START + 2 * T });
    await elsewhere[4]!.cancel();
    const next = outcomeOf(limiter.acquire(KEY));
    await advance(20 * T);
    // The first call gets the refunded units, and all behind it move up.
    expect(patient.map(({ at }) => (at! - START) / T)).toEqual([4, 5, 6, 7, 8]);
    expect((next.at! - START) / T).toBe(9);
    await store.close();
  });
});

it.each([undefined, 1000])(
  'rejects a cost above the quota as one that never fits, with a timeout of %s',
  async (timeout) => {
    const { limiter } = waitingFor(new MemoryStore(), { algo: 'gcra', rate: 1, interval: '1s', burst: 3 });
    const asked = limiter.acquire(KEY, { cost: 4, ...(timeout !== undefined && { timeout }) });
    await expect(asked).rejects.toThrow(/never allows 4 units at once, but at most 3$/);
  },
);
