import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type ConsumeOptions,
  type LimitCheck,
  type LimitDefinition,
  LimiterService,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
} from '../../../lib/index.js';
import { createTestingStore, TestClock } from '../../../lib/testing/index.js';
import { outcomeOf } from '../../support/limits/waiting.js';

const kept = {
  name: 'kept',
  algo: 'fixed-window',
  rate: 10,
  interval: '1m',
  reserveFor: { critical: 0.2 },
} as const satisfies LimitDefinition;

/** The error for an unknown member of a check. */
const refusal = new RateLimitArgumentError("unknown option 'prority'. Did you mean 'priority'?");

describe('priorities of calls', () => {
  let app: TestingModule;
  let service: LimiterService;
  const clock = new TestClock();

  beforeEach(async () => {
    const store = createTestingStore({ clock });
    const define = { important: { ...kept, name: 'important', priority: 'critical' as const, cost: 2 } };
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ store, define })] }).compile();
    await app.init();
    service = app.get(LimiterService);
  });
  afterEach(() => app.close());

  it('are options in the place of a number of units, which is the cost', async () => {
    const limiter = service.for(kept);
    expect(await limiter.consume('a', 3)).toMatchObject({ quota: 8, remaining: 5 });
    expect(await limiter.consume('a', { cost: 3 })).toMatchObject({ quota: 8, remaining: 2 });
    expect(await limiter.consume('a', {})).toMatchObject({ remaining: 1 });
    expect(await limiter.peek('a', { priority: 'critical' })).toMatchObject({ quota: 10, remaining: 3 });
    expect(await limiter.peek('a', { cost: 3 })).toMatchObject({ allowed: false, remaining: 1 });
    expect(await limiter.consume('a', { cost: 3, priority: 'critical' })).toMatchObject({
      allowed: true,
      remaining: 0,
    });
    expect(await limiter.consume('a', { cost: 9 })).toMatchObject({ allowed: false, retryAfterMs: Infinity });
  });

  it("are the limit's own unless they are given", async () => {
    const limiter = service.for('important');
    expect(await limiter.consume('a')).toMatchObject({ quota: 10, remaining: 8 });
    expect(await limiter.consume('a', { priority: 'sheddable' })).toMatchObject({ quota: 8, remaining: 4 });
    const { decisions } = await service.check([{ limit: 'important', key: 'a' }]);
    expect(decisions).toMatchObject([{ quota: 10, remaining: 4 }]);
  });

  it('are those of each limit of a check, which is charged to all or none', async () => {
    const other = { ...kept, name: 'other' };
    const check = (cost: number) =>
      service.check([
        { limit: kept, key: 'a', cost, priority: 'critical' },
        { limit: other, key: 'a', cost },
      ]);
    expect(await check(8)).toMatchObject({ allowed: true, decisions: [{ remaining: 2 }, { remaining: 0 }] });
    expect(await check(2)).toMatchObject({ allowed: false, decisions: [{ remaining: 2 }, { remaining: 0 }] });
    expect(await service.for(kept).peek('a', { priority: 'critical' })).toMatchObject({ remaining: 2 });
  });

  it('decide who waits: the important do not wait behind others', async () => {
    const limiter = service.for(kept);
    await limiter.consume('a', 8);
    const end = new AbortController();
    const others = outcomeOf(limiter.acquire('a', { cost: 2, signal: end.signal }));
    expect(await limiter.acquire('a', { cost: 1, priority: 'critical', timeout: '1s' })).toMatchObject({
      allowed: true,
    });
    await expect(limiter.acquire('a', { cost: 2, priority: 'critical', timeout: 0 })).rejects.toThrow(
      /allowed nothing within/,
    );
    expect(others).toEqual({});
    end.abort(new Error('gone'));
    await expect(limiter.acquire('a', { cost: 9 })).rejects.toThrow(
      "limit 'kept' never allows 9 units at once, but at most 8",
    );
  });

  it('decide how long a reservation waits', async () => {
    const bucket = service.for({ ...kept, name: 'bucket', algo: 'gcra', rate: 10, interval: '10s' });
    expect(await bucket.reserve('a', { cost: 8 })).toMatchObject({ allowed: true, delayMs: 0, remaining: 0 });
    expect(await bucket.reserve('a', { cost: 2, priority: 'critical' })).toMatchObject({ delayMs: 0 });
    const reserved = await bucket.reserve('a', { cost: 1, priority: 'critical' });
    expect(reserved).toMatchObject({ allowed: true, delayMs: 1000 });
    // Of the future only those take who may take all: a backlog of others would keep them out.
    expect(await bucket.reserve('a', { cost: 1 })).toMatchObject({ allowed: false, retryAfterMs: 4000 });
    await reserved.cancel();
    expect(await bucket.reserve('a', { cost: 1 })).toMatchObject({ allowed: false, retryAfterMs: 3000 });
  });

  it('keep those who wait in a line of their own from what is kept', async () => {
    const bucket = service.for({ ...kept, name: 'line', algo: 'token-bucket', rate: 10, interval: '10s' });
    await bucket.consume('a', 8);
    const end = new AbortController();
    const others = [1, 2, 3].map((cost) => outcomeOf(bucket.acquire('a', { cost, signal: end.signal })));
    await expect(bucket.acquire('a', { cost: 1, timeout: 900 })).rejects.toMatchObject({
      decision: { retryAfterMs: 1000 },
    });
    expect(await bucket.acquire('a', { cost: 2, priority: 'critical', timeout: 0 })).toMatchObject({ allowed: true });
    expect(await bucket.peek('a', { priority: 'critical' })).toMatchObject({ remaining: 0, retryAfterMs: 1000 });
    expect(others).toEqual([{}, {}, {}]);
    end.abort(new Error('gone'));
  });

  it('hold what is kept of a limit of concurrency', async () => {
    const held = service.for({ name: 'held', algo: 'concurrency', limit: 3, ttl: '1m', reserveFor: { critical: 0.3 } });
    const first = await held.consume('a', 2);
    expect(await held.consume('a')).toMatchObject({ allowed: false, quota: 2, remaining: 0 });
    expect(await held.hold('a', () => 'done', { priority: 'critical' })).toBe('done');
    await first.lease!.release();
    expect(await held.consume('a')).toMatchObject({ allowed: true, remaining: 1 });
  });

  it.each<[unknown, string]>([
    [{ prio: 'critical' }, "unknown option 'prio', expected one of cost, priority, share, anchor, within, upTo"],
    [{ cost: 1, share: 'a' }, "limit 'kept' has no option 'share'. Remove 'share' from the call"],
    [{ priority: 'high' }, "priority: expected 'critical', 'default' or 'sheddable', received 'high'"],
    [{ priority: null }, "priority: expected 'critical', 'default' or 'sheddable', received null"],
    [{ cost: -1 }, 'cost: expected a whole number >= 0, received -1'],
    [[1], 'cost: expected a whole number >= 0, received [ 1 ]'],
    [null, 'cost: expected a whole number >= 0, received null'],
    ['1', "cost: expected a whole number >= 0, received '1'"],
  ])('refuses %p before anything is sent', async (options, message) => {
    const limiter = service.for(kept);
    const error = new RateLimitArgumentError(message);
    await expect(limiter.consume('a', options as ConsumeOptions)).rejects.toThrow(error);
    await expect(limiter.peek('a', options as ConsumeOptions)).rejects.toThrow(error);
    expect(await limiter.peek('a')).toMatchObject({ remaining: 8 });
  });

  it('refuses options that a call has not, and a wrong priority of a check', async () => {
    const limiter = service.for({ ...kept, name: 'g', algo: 'gcra', rate: 1, interval: '1s' });
    await expect(limiter.acquire('a', { maxWait: 1 } as object)).rejects.toThrow(
      "unknown option 'maxWait', expected one of cost, priority, share, anchor, within, timeout, signal",
    );
    await expect(limiter.reserve('a', { timeout: 1 } as object)).rejects.toThrow(
      "unknown option 'timeout', expected one of cost, priority, share, anchor, within, maxWait",
    );
    await expect(service.check([{ limit: kept, key: 'a', priority: 'low' as never }])).rejects.toThrow(
      "priority: expected 'critical', 'default' or 'sheddable', received 'low'",
    );
  });

  it('refuses unknown members of an entry of a check or a reservation, and names the one that was meant', async () => {
    const misspelt = [
      { limit: kept, key: 'a' },
      { limit: kept, key: 'b', prority: 'critical' },
    ] as LimitCheck[];
    await expect(service.check(misspelt)).rejects.toThrow(refusal);
    await expect(service.reserve(misspelt)).rejects.toThrow(refusal);
    expect(await service.for(kept).peek('a')).toMatchObject({ remaining: 8 });
  });

  it.each<[Record<string, unknown>, string | RegExp]>([
    [{ reserveFor: 0.2 }, /reserveFor: expected an object of shares by priority.+, received 0\.2/],
    [{ reserveFor: null }, /reserveFor: expected an object of shares by priority.+, received null/],
    [
      { reserveFor: {} },
      /reserveFor: expected an object of shares by priority, 'critical' or 'default'.+, received \{\}/,
    ],
    [{ reserveFor: { critical: 0 } }, '.reserveFor.critical: expected a number > 0 and < 1, received 0'],
    [{ reserveFor: { critical: 1 } }, '.reserveFor.critical: expected a number > 0 and < 1, received 1'],
    [{ reserveFor: { critical: '0.2' } }, ".reserveFor.critical: expected a number > 0 and < 1, received '0.2'"],
    [{ reserveFor: { critical: NaN } }, '.reserveFor.critical: expected a number > 0 and < 1, received NaN'],
    [
      { reserveFor: { critical: 0.6, default: 0.4 } },
      "reserveFor: expected an object of shares by priority, 'critical' or 'default', each more than 0 and together less than 1, such as { critical: 0.2 }, received { critical: 0.6, default: 0.4 }",
    ],
    [{ reserveFor: { sheddable: 0.2 } }, ".reserveFor: unknown option 'sheddable', expected one of critical, default"],
    [{ prefetch: { units: 2, ttl: 10 } }, "options 'reserveFor' and 'prefetch' exclude each other"],
    [{ blockFor: '1m' }, "options 'reserveFor' and 'blockFor' exclude each other"],
    [
      { priority: 'urgent' },
      "priority: expected one of critical, default, sheddable, or a function of the context, received 'urgent'",
    ],
    [
      { priority: 1 },
      'priority: expected one of critical, default, sheddable, or a function of the context, received 1',
    ],
  ])('refuses a limit with %p', (options, message) => {
    const make = () => service.for({ ...kept, ...options });
    expect(make).toThrow(RateLimitConfigError);
    expect(make).toThrow(message);
  });
});
