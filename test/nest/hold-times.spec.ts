import { describe, expect, it } from '@jest/globals';
import { CompiledLimit, type StoreDecision } from '../../lib/testing/store/index.js';
import { leaseBegan, leaseEnded, withExpectedWait } from '../../lib/app/limiter/hold-times.js';

const compile = (limit: number, blockFor = 0) =>
  new CompiledLimit({ algo: 'concurrency', limit, ttl: '10s' }, { location: 'test', blockFor });

const refusal = (quota: number, remaining: number, retryAfterMs = 9000): StoreDecision => ({
  allowed: false,
  limit: 'slots',
  quota,
  remaining,
  retryAfterMs,
  resetAfterMs: 10_000,
  delayMs: 0,
  source: 'memory',
});

const told = (limit: CompiledLimit, decision: StoreDecision, now: number, cost = 1) =>
  withExpectedWait(decision, { limit, cost }, now).retryAfterMs;

describe('the wait for a lease', () => {
  it('is that of the store before the first lease', () => {
    expect(told(compile(1), refusal(1, 0), 0)).toBe(9000);
  });

  it('is the age of the first lease until the first release', () => {
    const limit = compile(1);
    leaseBegan(limit, 1000);
    leaseBegan(limit, 1200);
    expect([1000, 1250, 4000, 12_000].map((now) => told(limit, refusal(1, 0), now))).toEqual([1000, 1000, 3000, 9000]);
  });

  it('follows the mean time of released leases', () => {
    const limit = compile(4);
    leaseBegan(limit, 0);
    leaseEnded(limit, 500);
    expect(told(limit, refusal(4, 0), 60_000)).toBe(125);
    expect(told(limit, refusal(4, 1), 60_000, 4)).toBe(500);
    expect(told(limit, refusal(4, 0, 70), 60_000)).toBe(70);
    for (let i = 0; i < 100; i++) leaseEnded(limit, 2000);
    expect(told(limit, refusal(4, 0), 60_000)).toBe(500);
    leaseEnded(limit, 0);
    expect(told(limit, refusal(4, 0), 60_000)).toBe(438);
  });

  it('is that of the store where a block is longer, or the cost never fits', () => {
    const [limit, blocking] = [compile(1), compile(1, 1e6)];
    for (const each of [limit, blocking]) leaseBegan(each, 0);
    expect(told(limit, refusal(1, 0, 60_000), 1000)).toBe(60_000);
    expect(told(limit, refusal(1, 0, Infinity), 1000, 2)).toBe(Infinity);
    expect(told(blocking, refusal(1, 0), 1000)).toBe(9000);
  });

  it('is none for an allowed decision', () => {
    const limit = compile(1);
    leaseBegan(limit, 0);
    const allowed = { ...refusal(1, 0, 0), allowed: true };
    expect(withExpectedWait(allowed, { limit, cost: 1 }, 1000)).toBe(allowed);
  });
});
