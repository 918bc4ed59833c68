import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { RedisStore, type RedisStoreOptions } from '../../../lib/index.js';
import { SharedDeadline, TimedCall } from '../../../lib/storage/redis/deadline.js';
import { Gathering } from '../../../lib/storage/stores/redis/batches.js';
import { OperationJob } from '../../../lib/storage/stores/redis/jobs.js';
import { compile, connectRedis, freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';
import { OwnTime } from '../../support/time/own-time.mjs';

/** How long an instance waits that was asked so often in that time. */
function waitOf(asked: number, elapsedMs: number, longestMs = 1): number {
  const gathering = new Gathering(longestMs);
  gathering.waitMs(1000);
  gathering.sent(asked);
  return gathering.waitMs(1000 + elapsedMs);
}

describe('an instance that gathers checks', () => {
  it.each([
    [100, 50, 1],
    [99, 50, 0],
    [200, 100, 1],
    [199, 100, 0],
    // Too soon to judge.
    [1000, 49, 0],
  ])('asked %i times in %i ms waits %i ms', (asked, elapsedMs, waitMs) => {
    expect(waitOf(asked, elapsedMs)).toBe(waitMs);
    expect(waitOf(asked, elapsedMs, 0)).toBe(0);
  });

  it('stops once it is asked less', () => {
    const of = new Gathering(1);
    of.waitMs(1000);
    of.sent(1000);
    expect([of.waitMs(1050), of.waitMs(1099), of.waitMs(1100)]).toEqual([1, 1, 0]);
  });
});

it('counts all keys of an operation, also those that it needs besides its counters', () => {
  const counter = { limit: compile({ algo: 'gcra', rate: 60, interval: '1m' }), identity: 'user:1' };
  const nothing = () => undefined;
  const keysOf = (moreKeys?: number) => new OperationJob([counter], nothing, () => 1, nothing, nothing, moreKeys).keys;
  expect([keysOf(), keysOf(2)]).toEqual([1, 3]);
});

describe('checks of a store on Redis', () => {
  let redis: Redis;
  beforeAll(async () => {
    redis = await connectRedis();
  });
  afterAll(() => redis.disconnect());

  const limit = compile({ algo: 'gcra', rate: 1_000_000, interval: '1m' }, 'gathered');
  const check = (identity: string) => ({ entries: [{ limit, identity, cost: 1 }] });

  /** Whether two checks of different turns travel in one call, once many were asked. */
  async function travelTogether(store: RedisStore): Promise<boolean> {
    const evalsha = jest.spyOn(redis, 'evalsha');
    await store.check(Array.from({ length: 2000 }, (_, i) => check(`user:${i % 100}`)));
    evalsha.mockClear();
    const first = store.check([check('one')]);
    await setImmediate();
    await Promise.all([first, store.check([check('other')])]);
    const { length } = evalsha.mock.calls;
    evalsha.mockRestore();
    return length === 1;
  }

  async function withStore<T>(options: RedisStoreOptions, run: (store: RedisStore) => Promise<T>): Promise<T> {
    const store = new RedisStore(redis, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS, ...options });
    await store.open();
    try {
      return await run(store);
    } finally {
      await store.close();
    }
  }

  it('travel with those of the next turns while many are asked', () =>
    withStore({ gatherMs: 100 }, async (store) => {
      // On a busy machine, it may take some tries to ask often enough.
      while (!(await travelTogether(store)));
    }));

  it('wait for nobody otherwise', async () => {
    for (const options of [{}, { gatherMs: 0 }]) {
      await withStore(options, async (store) => {
        for (let tries = 0; tries < 3; tries++) expect(await travelTogether(store)).toBe(false);
      });
    }
  });

  it('have the rest of their time once they have waited', () =>
    withStore({ gatherMs: 500, timeoutMs: 1000 }, async (store) => {
      while (!(await travelTogether(store)));
      await store.check(Array.from({ length: 2000 }, () => check('busy')));
      // On a busy machine a deadline ends late.
      const time = new OwnTime();
      const sent = new Promise<number>((resolve) => {
        jest.spyOn(redis, 'evalsha').mockImplementation(() => {
          resolve(time.now());
          return new Promise(() => undefined);
        });
      });
      await expect(store.check([check('late')])).rejects.toThrow('did not answer within 1000 ms');
      expect(time.now() - (await sent)).toBeLessThan(900);
      time.stop();
      jest.restoreAllMocks();
    }));

  it('are all answered if the store closes meanwhile', () =>
    withStore({ gatherMs: 100 }, async (store) => {
      while (!(await travelTogether(store)));
      await store.check(Array.from({ length: 2000 }, () => check('busy')));
      const waiting = store.check([check('last')]);
      await store.close();
      await expect(waiting).resolves.toHaveLength(1);
    }));
});

const TIMEOUT_MS = 40;

class Call extends TimedCall {
  expire(): void {}
}

/** Blocks the process. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe('a deadline that calls share', () => {
  it('has one timer, even if the process was blocked before a call was sent', async () => {
    const deadline = new SharedDeadline(TIMEOUT_MS, true);
    const [blocked, next] = [new Call(), new Call()];
    const pending = new Set<unknown>();
    const { setTimeout: set, clearTimeout: clear } = globalThis;
    const sets = jest.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms: number) => {
      const timer = set(() => {
        pending.delete(timer);
        run();
      }, ms);
      pending.add(timer);
      return timer;
    }) as typeof setTimeout);
    const clears = jest.spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
      pending.delete(timer);
      clear(timer);
    });
    // Timers are now due before the next turn.
    await setImmediate();
    deadline.begin(blocked);
    block(TIMEOUT_MS + 20);
    deadline.begin(next);
    await sleep(TIMEOUT_MS / 4);
    const timers = pending.size;
    deadline.end(blocked);
    deadline.end(next);
    sets.mockRestore();
    clears.mockRestore();
    expect(timers).toBe(1);
  });
});
