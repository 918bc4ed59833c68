import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, type Store } from '../../../lib/index.js';
import { DeadlineStore } from '../../../lib/storage/stores/layers/deadline.store.js';
import { compile } from '../../support/limits/stores.js';

const TIMEOUT_MS = 250;
const limit = compile({ algo: 'concurrency', limit: 5, ttl: '1m' }, 'limit');
const counter = { limit, identity: 'user:1' };
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

beforeEach(() => void jest.useFakeTimers());
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

describe.each(Object.keys(calls))('%s of a subclass of a store of ours', (method) => {
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
