import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { type AlgorithmOptions, MemoryStore } from '../../../lib/index.js';
import { outcomeOf, waitingFor } from '../../support/limits/waiting.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const KEY = 'user:1';
const CALLS = 300;

/** Whether but a few of so many objects have gone; some go only with a later collection. */
async function haveGone(objects: readonly WeakRef<object>[]): Promise<boolean> {
  for (let collections = 0; collections < 5; collections++) {
    await sleep(1);
    collectGarbage();
    if (objects.filter((each) => each.deref() !== undefined).length < objects.length / 30) return true;
  }
  return false;
}

describe('rejected calls behind a waiting one', () => {
  it.each<[string, AlgorithmOptions, 'is used up' | 'is blocked']>([
    ['sliding-log', { algo: 'sliding-log', rate: 1, interval: '1h' }, 'is used up'],
    ['fixed-window', { algo: 'fixed-window', rate: 1, interval: '1h' }, 'is used up'],
    ['leaky-bucket', { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 0 }, 'is used up'],
    ['concurrency', { algo: 'concurrency', limit: 1, ttl: '1h' }, 'is used up'],
    ['gcra', { algo: 'gcra', rate: 1, interval: '1h' }, 'is used up'],
    ['gcra', { algo: 'gcra', rate: 1, interval: '1h' }, 'is blocked'],
    ['token-bucket', { algo: 'token-bucket', rate: 1, interval: '1h' }, 'is blocked'],
  ])('are garbage: %s, %j, that %s', async (_, options, state) => {
    const store = new MemoryStore();
    const { limiter, queues } = waitingFor(store, options);
    if (state === 'is blocked') await limiter.block(KEY, '1h');
    else await limiter.consume(KEY);
    const patient = outcomeOf(limiter.acquire(KEY));
    await sleep(1);
    const kept: WeakRef<object>[] = [];
    let rejected = 0;
    const reject = async (timeout?: number) => {
      const leaving = new AbortController();
      kept.push(new WeakRef(leaving.signal));
      const { signal } = leaving;
      const waiting = limiter.acquire(KEY, timeout === undefined ? { signal } : { signal, timeout });
      if (timeout === undefined) setImmediate(() => leaving.abort());
      await waiting.catch(() => rejected++);
    };
    // Some have no time, some give up, and some are told that they wait in vain.
    for (const timeout of [0, undefined, 2]) await Promise.all(Array.from({ length: CALLS }, () => reject(timeout)));
    expect(rejected).toBe(3 * CALLS);
    expect(await haveGone(kept)).toBe(true);
    expect(patient).toEqual({});
    await queues.onModuleDestroy();
    await store.close();
  });
});
