import { AssertionError } from 'node:assert';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitDefinition,
  type Limiter,
  LimiterService,
  RateLimitArgumentError,
  RateLimitModule,
} from '../../lib/index.js';
import { createTestingStore, exhaust, expectAllowed, expectRefused, TestClock } from '../../lib/testing/index.js';

const few: LimitDefinition = { name: 'few', algo: 'fixed-window', rate: 3, interval: '1m' };
const one: LimitDefinition = { name: 'one', algo: 'fixed-window', rate: 1, interval: '10s' };

/** The message of the `AssertionError` that an assertion throws. */
function complaint(assertion: () => void): string {
  try {
    assertion();
  } catch (error) {
    expect(error).toBeInstanceOf(AssertionError);
    // The stack begins where the test asserted.
    expect((error as Error).stack).toMatch(/\n\s+at [^\n]*expectations\.spec/);
    expect((error as Error).stack).not.toMatch(/testing\/expectations\.[jt]s/);
    return (error as Error).message;
  }
  throw new Error('it did not complain');
}

describe('the assertions', () => {
  const store = createTestingStore({ clock: new TestClock() });
  let app: TestingModule;
  let service: LimiterService;
  let limiter: Limiter;

  beforeAll(async () => {
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ store })] }).compile();
    await app.init();
    service = app.get(LimiterService);
    limiter = service.for(few);
  });

  const check = () =>
    service.check([
      { limit: few, key: 'a' },
      { limit: one, key: 'a' },
    ]);

  beforeEach(() => store.close());

  afterAll(async () => {
    await app.close();
    await store.close();
  });

  it('expectAllowed', async () => {
    const decision = await limiter.consume('a');
    expectAllowed(decision);
    expectAllowed(decision, {});
    expectAllowed(decision, { remaining: 2 });
    expect(complaint(() => expectAllowed(decision, { remaining: 3 }))).toBe(
      "limit 'few': expected 3 units left, but it has 2",
    );
    const refusal = await limiter.consume('a', 3);
    expect(complaint(() => expectAllowed(refusal))).toBe(
      "limit 'few': expected it to allow, but it rejected (it would allow in 60000 ms)",
    );
    expect(complaint(() => expectAllowed(refusal, { remaining: 2 }))).toContain(
      'expected it to allow, but it rejected',
    );
  });

  it('expectRefused', async () => {
    const decision = await limiter.consume('a');
    expect(complaint(() => expectRefused(decision))).toBe(
      "limit 'few': expected it to reject, but it allowed (and has 2 units left)",
    );
    const refusal = await limiter.consume('a', 3);
    expectRefused(refusal);
    expectRefused(refusal, { limit: 'few', retryAfterMs: 60_000 });
    expect(complaint(() => expectRefused(refusal, { limit: 'one' }))).toBe(
      "limit 'one': expected it to reject, but 'few' rejected",
    );
    expect(complaint(() => expectRefused(refusal, { retryAfterMs: 0 }))).toBe(
      "limit 'few': expected it to reject for 0 ms, but it rejected for 60000 ms",
    );
  });

  it('of several limits, look at the tightest or at the one that is named', async () => {
    const allowed = await check();
    expectAllowed(allowed, { remaining: 0 });
    expect(complaint(() => expectRefused(allowed))).toContain(
      "limit 'one': expected it to reject, but it allowed (and has 0 units left)",
    );
    const refused = await check();
    expectRefused(refused, { retryAfterMs: 10_000 });
    expectRefused(refused, { limit: 'one', retryAfterMs: 10_000 });
    expect(complaint(() => expectAllowed(refused))).toContain(
      "limit 'one': expected it to allow, but it rejected (it would allow in 10000 ms)",
    );
    expect(complaint(() => expectRefused(refused, { limit: 'few' }))).toBe(
      "limit 'few': expected it to reject, but 'one' rejected",
    );
    await limiter.consume('a', 2);
    const both = await check();
    expectRefused(both, { retryAfterMs: 60_000 });
    expectRefused(both, { limit: 'one', retryAfterMs: 10_000 });
  });

  it('exhaust takes what is left, and nothing if nothing is', async () => {
    await limiter.consume('a');
    expectAllowed(await exhaust(limiter, 'a'), { remaining: 0 });
    expectRefused(await limiter.consume('a'));
    expectRefused(await exhaust(limiter, 'a'));
    expectAllowed(await limiter.consume('b'), { remaining: 2 });
    await expect(exhaust(limiter, '')).rejects.toThrow(RateLimitArgumentError);
  });

  it('exhaust neither blocks whom the limit would block, nor charges debts', async () => {
    const strict = service.for({ ...few, name: 'strict', blockFor: '1h' });
    await exhaust(strict, 'a');
    await exhaust(strict, 'a');
    expectRefused(await strict.peek('a'), { retryAfterMs: 60_000 });
    await strict.refund('a', 1);
    expectAllowed(await strict.consume('a'));
  });

  it('exhaust holds all of a concurrency limit', async () => {
    const exports = service.for({ name: 'exports', algo: 'concurrency', limit: 3, ttl: '1m' });
    await using lease = (await exhaust(exports, 'a')).lease!;
    expectRefused(await exports.consume('a'));
    await lease.release();
    expectAllowed(await exports.peek('a'), { remaining: 3 });
  });
});
