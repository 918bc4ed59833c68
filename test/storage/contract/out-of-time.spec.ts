import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { type RedisClient, RateLimitStoreError, RedisStore } from '../../../lib/index.js';
import type { Check } from '../../../lib/testing/store/index.js';
import { compile } from '../../support/limits/stores.js';

const TIMEOUT_MS = 250;
const limit = compile({ algo: 'fixed-window', rate: 9, interval: '1h' }, 'limit');
/** Two identities in different slots. */
const entries = ['user:1', 'user:2'].map((identity) => ({ limit, identity, cost: 1 }));

const never = () => new Promise<never>(() => undefined);

/** A Cluster of one node that accepts all commands and never replies. */
const hung = {
  isCluster: true,
  status: 'ready',
  slots: Array.from({ length: 16_384 }, () => ['h:1']),
  options: {},
  nodes: () => [],
  evalsha: never,
  refreshSlotsCache: () => undefined,
} as never as RedisClient;

describe('a check of several calls that ran out of time', () => {
  beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'Date'] }));
  afterEach(() => void jest.useRealTimers());

  async function failureOf(check: Check): Promise<RateLimitStoreError> {
    const failed = new RedisStore(hung, { timeoutMs: TIMEOUT_MS }).check([check]).catch((error: unknown) => error);
    await turn();
    await jest.advanceTimersByTimeAsync(TIMEOUT_MS);
    return (await failed) as RateLimitStoreError;
  }

  it.each([
    ['of one slot', entries.slice(0, 1)],
    ['of several slots', entries],
  ])('%s blames a node that had most of the time, and no node that had little', async (_, some) => {
    expect(await failureOf({ entries: some, since: performance.now() - 100 })).toMatchObject({
      code: 'SLUICE_STORE_TIMEOUT',
      node: 'h:1',
    });
    const late = await failureOf({ entries: some, since: performance.now() - 200 });
    expect(late).toMatchObject({ code: 'SLUICE_STORE_TIMEOUT', isOutOfTime: true });
    expect(late.node).toBeUndefined();
    expect(late.message).toContain(`${TIMEOUT_MS} ms`);
  });
});
