import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore } from '../../../lib/index.js';
import type { Refund, ReserveEntry, StoreDecision } from '../../../lib/testing/store/index.js';
import { ManualClock } from '../../support/limits/stores.js';
import { outcomeOf, spyOnLooks, waitingFor } from '../../support/limits/waiting.js';

const KEY = 'user:1';

/** Takes units at once, and holds its answers back. */
class SlowStore extends MemoryStore {
  asked = 0;
  private readonly answers: (() => void)[] = [];

  override async reserve(entry: ReserveEntry): Promise<StoreDecision> {
    const decision = await super.reserve(entry);
    this.asked++;
    await new Promise<void>((resolve) => this.answers.push(resolve));
    return decision;
  }

  /** Gives the answers of all calls so far. */
  async answer(): Promise<void> {
    for (const answer of this.answers.splice(0)) answer();
    await turn();
  }
}

const every: AlgorithmOptions[] = [
  { algo: 'fixed-window', rate: 4, interval: '1h' },
  { algo: 'calendar-window', rate: 4, period: 'year' },
  { algo: 'sliding-window', rate: 4, interval: '1h' },
  { algo: 'sliding-log', rate: 4, interval: '1h' },
  { algo: 'token-bucket', rate: 4, interval: '1h' },
  { algo: 'gcra', rate: 4, interval: '1h' },
  // Places in its queue are taken for the next second only.
  { algo: 'leaky-bucket', rate: 4, interval: '1s', queue: 4 },
  { algo: 'concurrency', limit: 4, ttl: '1h' },
];

describe.each(every)('a call that gives up before its answer, with %p', (options) => {
  it.each([[[0]], [[1]], [[2]], [[0, 1]], [[0, 2]], [[0, 1, 2]]])('holds no units: %p of three', async (leave) => {
    // The clock stands: units that come back later are fewer.
    const store = new SlowStore({ clock: new ManualClock().now });
    const { limiter, queues } = waitingFor(store, options);
    const first = outcomeOf(limiter.acquire(KEY));
    const leaving = [0, 1, 2].map(() => new AbortController());
    const outcomes = leaving.map(({ signal }) => outcomeOf(limiter.acquire(KEY, { signal })));
    while (store.asked < 4) await turn().then(() => (store.asked < 4 ? store.answer() : undefined));
    for (const index of leave) leaving[index]!.abort(new Error('enough'));
    for (let round = 0; round < 5; round++) await store.answer();
    expect(outcomes.filter(({ reason }) => reason !== undefined)).toHaveLength(leave.length);
    const { quota, remaining } = await limiter.peek(KEY);
    expect(quota - remaining).toBe(4 - leave.length);
    expect(first.value).toMatchObject({ allowed: true });
    const closing = queues.onModuleDestroy();
    await store.answer();
    await closing;
    await store.close();
  });
});

it('a queue that has ended does not end the next one of its key', async () => {
  const store = new MemoryStore();
  const { limiter, queues } = waitingFor(store, { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 9 });
  await limiter.consume(KEY);
  const leaving = new AbortController();
  const first = outcomeOf(limiter.acquire(KEY, { signal: leaving.signal }));
  await turn();
  // All in one turn: the last call of a queue gives up, a refund drains the queue, and new calls come.
  leaving.abort(new Error('enough'));
  const refunding = limiter.refund(KEY, 1);
  const others = [1, 2, 3].map(() => outcomeOf(limiter.acquire(KEY)));
  await refunding;
  await turn();
  expect(first.reason).toEqual(new Error('enough'));
  await queues.onModuleDestroy();
  await turn();
  const ended = others.filter(({ value, reason }) => value !== undefined || reason !== undefined);
  expect(ended).toHaveLength(3);
  expect(ended.at(-1)).toMatchObject({ reason: { message: 'the app is shutting down' } });
  await store.close();
});

it.each(every.filter(({ algo }) => algo !== 'leaky-bucket'))(
  'the cost of a release or a refund does not grow with the number of waiting calls, with %p',
  async (options) => {
    const looks = spyOnLooks();
    const store = new MemoryStore();
    const { limiter, queues } = waitingFor(store, options);
    const taken = [];
    for (let i = 0; i < 4; i++) taken.push(await limiter.consume(KEY));
    const waiting = Array.from({ length: 2000 }, () => outcomeOf(limiter.acquire(KEY, { timeout: '1y' })));
    await turn();
    looks.mockClear();
    for (const { lease } of taken) {
      await (lease === undefined ? limiter.refund(KEY, 1) : lease.release());
      await turn();
    }
    expect(looks.mock.calls.length).toBeLessThan(100);
    looks.mockRestore();
    await queues.onModuleDestroy();
    expect(waiting).toHaveLength(2000);
    await store.close();
  },
);

it('new calls do not overtake waiting ones while units are refunded', async () => {
  class SlowlyRefunding extends MemoryStore {
    override async refund(refunds: readonly Refund[]): Promise<void> {
      await super.refund(refunds);
      for (let i = 0; i < 5; i++) await turn();
    }
  }
  const store = new SlowlyRefunding();
  const { limiter, queues } = waitingFor(store, { algo: 'leaky-bucket', rate: 1000, interval: '1s', queue: 9 });
  await limiter.consume(KEY, 3);
  const served: number[] = [];
  const acquire = async (number: number) => served.push((await limiter.acquire(KEY), number));
  const waiting = [acquire(1), acquire(2)];
  const refunds = [limiter.refund(KEY, 1)];
  await turn();
  refunds.push(limiter.refund(KEY, 1));
  waiting.push(acquire(3));
  await Promise.all([...refunds, ...waiting]);
  expect(served).toEqual([1, 2, 3]);
  await queues.onModuleDestroy();
  await store.close();
});

function throwing(): never {
  throw new Error('no such table');
}

describe('a store of the app that breaks its contract', () => {
  it.each<[string, () => unknown, RegExp]>([
    ['gives no decision', () => Promise.resolve(), /store: expected a decision for a reservation, received undefined/],
    ['throws at once', throwing, /no such table/],
  ])('fails the calls that wait, and not the process: it %s', async (_, reserve, message) => {
    const store = Object.assign(new MemoryStore(), { reserve }) as MemoryStore;
    const { limiter, queues } = waitingFor(store, { algo: 'gcra', rate: 4, interval: '1h' });
    await expect(limiter.acquire(KEY)).rejects.toThrow(message);
    await expect(limiter.acquire(KEY)).rejects.toThrow(message);
    await queues.onModuleDestroy();
    await store.close();
  });
});
