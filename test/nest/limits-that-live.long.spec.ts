import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import {
  type LimitDefinition,
  type Limiter,
  LimiterService,
  RateLimitArgumentError,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitTimeoutError,
  RedisStore,
} from '../../lib/index.js';
import { MovedTime } from '../support/time/moved-time.js';
import { connectRedis, freshPrefix } from '../support/limits/stores.js';

let redis: Redis;
let time: MovedTime;
beforeAll(async () => {
  redis = await connectRedis();
  time = new MovedTime(redis);
});
afterAll(() => redis.disconnect());

/** Apps that count by the process's clock, which stands still until the test moves it. */
const kinds: Record<string, (prefix?: string) => RateLimitModuleOptions> = {
  'in process': () => ({}),
  'on Redis': (prefix = freshPrefix()) => ({
    store: new RedisStore(redis, { clock: MovedTime.clock, prefix, timeoutMs: 5000 }),
  }),
};

const KEY = 'user:1';

const wrong = (value: unknown) => value as never;

const reasonOf = (action: Promise<unknown>) =>
  action.then(
    () => undefined,
    (reason: unknown) => reason,
  );

describe.each(Object.entries(kinds))('a limiter %s', (_, options) => {
  let app: TestingModule;
  let service: LimiterService;
  let names = 0;
  beforeEach(() => time.stop());
  afterEach(() => time.run());
  beforeAll(async () => {
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(options())] }).compile();
    await app.init();
    service = app.get(LimiterService);
  });
  afterAll(() => app.close());

  /** A limiter that no other test counts in. */
  const limiterOf = (limit: object): Limiter => service.for({ name: `limit-${++names}`, ...limit } as LimitDefinition);

  const limiterFor = (limit: number, ttl: number | string = '1m') => limiterOf({ algo: 'concurrency', limit, ttl });

  describe('acquire', () => {
    const slow = { rate: 1, interval: '1h' };

    it.each(['token-bucket', 'gcra', 'sliding-log', 'sliding-window', 'leaky-bucket'])(
      'waits as long as it takes, with %s',
      async (algo) => {
        const more = algo === 'leaky-bucket' ? { queue: 0 } : algo === 'sliding-window' ? { slices: 100 } : {};
        const limiter = limiterOf({ algo, rate: 1, interval: 300, ...more });
        const { value, ms } = await time.of(async () => [await limiter.acquire(KEY), await limiter.acquire(KEY)]);
        for (const decision of value) expect(decision).toMatchObject({ allowed: true, delayMs: 0 });
        expect(ms).toBeGreaterThanOrEqual(300);
        // A slice is counted until all of it has left.
        expect(ms).toBeLessThanOrEqual(algo === 'sliding-window' ? 304 : 301);
      },
    );

    it.each(['token-bucket', 'sliding-window'])(
      'serves a thousand in order, in the time that the rate takes, with %s',
      async (algo) => {
        const limiter = limiterOf({
          algo,
          rate: 400,
          interval: 250,
          ...(algo === 'token-bucket' ? {} : { slices: 100 }),
        });
        const served: number[] = [];
        const { ms } = await time.of(() =>
          Promise.all(Array.from({ length: 1000 }, async (_, i) => served.push((await limiter.acquire(KEY), i)))),
        );
        expect(served).toEqual(Array.from({ length: 1000 }, (_, i) => i));
        const least = algo === 'token-bucket' ? 375 : 500;
        expect(ms).toBeGreaterThanOrEqual(least);
        expect(ms).toBeLessThanOrEqual(least + 10);
      },
    );

    it.each(['gcra', 'sliding-log'])('rejects at once if the wait would be too long, with %s', async (algo) => {
      const limiter = limiterOf({ algo, ...slow });
      await limiter.consume(KEY);
      const { value, ms } = await time.of(() => reasonOf(limiter.acquire(KEY, { timeout: '1m' })));
      expect(value).toBeInstanceOf(RateLimitTimeoutError);
      const { decision } = value as RateLimitTimeoutError;
      expect(decision).toMatchObject({ allowed: false, limit: limiter.name, quota: 1 });
      expect(decision!.retryAfterMs).toBeGreaterThan(60_000);
      expect(decision).not.toHaveProperty('place');
      expect(ms).toBe(0);
    });

    it('rejects at once if its turn in a queue comes too late, though the queue has room', async () => {
      const limiter = limiterOf({ algo: 'leaky-bucket', rate: 10, interval: '1s', queue: 9 });
      await Promise.all(Array.from({ length: 10 }, () => limiter.consume(KEY)));
      const { value, ms } = await time.of(() => reasonOf(limiter.acquire(KEY, { timeout: 500 })));
      expect(value).toBeInstanceOf(RateLimitTimeoutError);
      expect(ms).toBe(0);
    });

    it.each([true, false])('refunds reserved units when the app closes: granted %s', async (granted) => {
      const prefix = freshPrefix();
      const start = async () => {
        const module = RateLimitModule.forRoot(options(prefix));
        const started = await Test.createTestingModule({ imports: [module] }).compile();
        await started.init();
        return started;
      };
      const limit: LimitDefinition = { algo: 'gcra', rate: 1, interval: '1h' };
      const [closing, staying] = [await start(), await start()];
      const limiter = closing.get(LimiterService).for(limit);
      await limiter.consume(KEY);
      const waiting = reasonOf(limiter.acquire(KEY));
      // Whether it was granted already or not.
      if (granted) await time.settle();
      await closing.close();
      expect(await waiting).toMatchObject({ name: 'RateLimitStoreError' });
      const { retryAfterMs } = await staying.get(LimiterService).for(limit).peek(KEY);
      expect(retryAfterMs).toBeLessThanOrEqual(3_600_000);
      await staying.close();
    });

    it('rejects at the latest when its time is over', async () => {
      const limiter = limiterOf({ algo: 'sliding-log', rate: 1, interval: 200 });
      await limiter.consume(KEY);
      const first = limiter.acquire(KEY);
      const { value, ms } = await time.of(() => reasonOf(limiter.acquire(KEY, { timeout: 250 })));
      await first;
      expect(value).toBeInstanceOf(RateLimitTimeoutError);
      expect(ms).toBeLessThanOrEqual(250);
    });

    it('rejects a cost that never fits', async () => {
      const limiter = limiterOf({ algo: 'gcra', ...slow });
      expect(await reasonOf(limiter.acquire(KEY, { cost: 2 }))).toMatchObject({ decision: { retryAfterMs: Infinity } });
    });

    it.each(['gcra', 'sliding-log', 'leaky-bucket'])(
      'ends with its signal, and takes nothing, with %s',
      async (algo) => {
        const limiter = limiterOf({ algo, rate: 2, interval: 400, ...(algo === 'leaky-bucket' ? { queue: 3 } : {}) });
        const reason = new Error('enough');
        expect(await reasonOf(limiter.acquire(KEY, { signal: AbortSignal.abort(reason) }))).toBe(reason);
        await time.of(() => limiter.acquire(KEY, { cost: 2 }));
        const aborting = new AbortController();
        const waiting = reasonOf(limiter.acquire(KEY, { cost: 2, signal: aborting.signal }));
        await time.pass(50);
        aborting.abort(reason);
        expect(await waiting).toBe(reason);
        await time.pass(400);
        expect((await limiter.peek(KEY)).remaining).toBe(algo === 'leaky-bucket' ? 4 : 2);
      },
    );

    it.each(['gcra', 'token-bucket', 'leaky-bucket'])(
      'leaves nothing behind when many give up, with %s',
      async (algo) => {
        const limiter = limiterOf({
          algo,
          rate: 1,
          interval: '1h',
          ...(algo === 'leaky-bucket' ? { queue: 100 } : {}),
        });
        await limiter.consume(KEY);
        const { resetAfterMs } = await limiter.peek(KEY);
        const leaving = new AbortController();
        const waiting = Array.from({ length: 50 }, () => reasonOf(limiter.acquire(KEY, { signal: leaving.signal })));
        await time.settle();
        // The line takes places of the next second, and one at least.
        const whileWaiting = (await limiter.peek(KEY)).resetAfterMs;
        expect([whileWaiting > resetAfterMs, whileWaiting <= resetAfterMs + 3_600_000]).toEqual([true, true]);
        leaving.abort(new Error('enough'));
        await Promise.all(waiting);
        await time.settle();
        expect((await limiter.peek(KEY)).resetAfterMs).toBe(resetAfterMs);
      },
    );

    it('does not let one key wait for another', async () => {
      const limiter = limiterOf({ algo: 'sliding-log', ...slow });
      await limiter.consume(KEY);
      const aborting = new AbortController();
      const waiting = reasonOf(limiter.acquire(KEY, { signal: aborting.signal }));
      const { ms } = await time.of(() => limiter.acquire('user:2'));
      expect(ms).toBe(0);
      aborting.abort();
      await waiting;
    });

    it.each([
      ['a reset', (limiter: Limiter) => limiter.reset(KEY)],
      ['a refund', (limiter: Limiter) => limiter.refund(KEY, 1)],
    ])('looks at once after %s', async (_, free) => {
      const limiter = limiterOf({ algo: 'sliding-log', ...slow });
      await limiter.consume(KEY);
      const waiting = limiter.acquire(KEY);
      await time.pass(50);
      const { value, ms } = await time.of(() => free(limiter).then(() => waiting));
      expect(value).toMatchObject({ allowed: true });
      expect(ms).toBe(0);
    });

    it('waits until a block is over', async () => {
      const limiter = limiterOf({ algo: 'gcra', rate: 5, interval: '1s' });
      await limiter.block(KEY, 200);
      const { ms } = await time.of(() => limiter.acquire(KEY));
      expect(ms).toBe(200);
      expect(await reasonOf(limiter.block(KEY, '1h').then(() => limiter.acquire(KEY, { timeout: 50 })))).toMatchObject({
        decision: { allowed: false, remaining: 0 },
      });
    });
  });

  describe('reserve', () => {
    it('takes units from the future, in order', async () => {
      const limiter = limiterOf({ algo: 'gcra', rate: 10, interval: '1s', burst: 1 });
      const delays = [];
      for (let i = 0; i < 4; i++) delays.push((await limiter.reserve(KEY)).delayMs);
      expect(delays).toEqual([0, 100, 200, 300]);
      const refused = await limiter.reserve(KEY, { maxWait: 100 });
      expect(refused).toMatchObject({ allowed: false, delayMs: 0 });
      expect(refused.retryAfterMs).toBe(400);
      await refused.cancel();
      expect((await limiter.reserve(KEY)).delayMs).toBe(400);
    });

    it('refunds a cancelled reservation once', async () => {
      const limiter = limiterOf({ algo: 'token-bucket', rate: 1, interval: '1h', burst: 10 });
      const reservation = await limiter.reserve(KEY, { cost: 8 });
      await Promise.all([reservation.cancel(), reservation.cancel()]);
      expect((await limiter.peek(KEY)).remaining).toBe(10);
      expect(JSON.parse(JSON.stringify(reservation))).toEqual({
        allowed: true,
        limit: limiter.name,
        quota: 10,
        remaining: 2,
        retryAfterMs: 0,
        resetAfterMs: reservation.resetAfterMs,
        delayMs: 0,
        source: reservation.source,
      });
    });

    it.each([
      [2, 8],
      [5, 5],
      [9, 1],
      [0, 10],
    ])('settles 5 units that were really %d', async (actual, left) => {
      const limiter = limiterOf({ algo: 'gcra', rate: 1, interval: '1h', burst: 10 });
      const reservation = await limiter.reserve(KEY, { cost: 5 });
      await reservation.settle(actual);
      await reservation.settle(0);
      expect((await limiter.peek(KEY)).remaining).toBe(left);
    });

    it('refuses algorithms without reservations', async () => {
      for (const algo of ['fixed-window', 'sliding-window', 'sliding-log']) {
        await expect(limiterOf({ algo, rate: 1, interval: '1s' }).reserve(KEY)).rejects.toThrow(RateLimitArgumentError);
      }
      expect(await limiterOf({ algo: 'leaky-bucket', rate: 1, interval: '1s' }).reserve(KEY)).toMatchObject({
        allowed: true,
      });
    });
  });

  it('penalizes into a debt of at most one quota', async () => {
    const limiter = limiterOf({ algo: 'gcra', rate: 10, interval: '1h' });
    await limiter.penalize(KEY, 12);
    expect(await limiter.peek(KEY)).toMatchObject({ allowed: false, remaining: 0 });
    await limiter.refund(KEY, 3);
    expect((await limiter.peek(KEY)).remaining).toBe(1);
    await limiter.penalize(KEY, 1000);
    await limiter.refund(KEY, 11);
    expect((await limiter.peek(KEY)).remaining).toBe(1);
  });

  describe('concurrency', () => {
    it('holds units until their lease is released', async () => {
      const limiter = limiterFor(2);
      const first = await limiter.consume(KEY, 2);
      expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, remaining: 0 });
      expect(first.lease?.id).toMatch(/^\d+$/);
      expect(JSON.parse(JSON.stringify(first.lease))).toEqual({ id: first.lease!.id });
      await Promise.all([first.lease!.release(), first.lease!.release()]);
      {
        await using lease = (await limiter.consume(KEY)).lease!;
        expect(await lease.renew()).toBe(true);
        expect((await limiter.peek(KEY)).remaining).toBe(1);
      }
      expect((await limiter.peek(KEY)).remaining).toBe(2);
      await first.lease!.release();
      expect((await limiter.peek(KEY)).remaining).toBe(2);
      expect(await first.lease!.renew()).toBe(false);
    });

    it('gives leases of several limits in one check', async () => {
      const held = limiterFor(1);
      const counted = limiterOf({ algo: 'gcra', rate: 5, interval: '1h' });
      const checks = [held, counted].map((limit) => ({ limit, key: KEY }));
      const { decisions } = await service.check(checks);
      expect(await service.check(checks)).toMatchObject({ allowed: false });
      expect((await counted.peek(KEY)).remaining).toBe(4);
      await decisions[0]!.lease!.release();
      expect(await service.check(checks)).toMatchObject({ allowed: true });
    });

    it('hold releases its units after work that returns or fails', async () => {
      const limiter = limiterFor(1);
      expect(await limiter.hold(KEY, () => 'done')).toBe('done');
      await expect(limiter.hold(KEY, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
      const inside = await limiter.hold(KEY, () => reasonOf(limiter.hold(KEY, () => undefined)));
      expect(inside).toBeInstanceOf(RateLimitTimeoutError);
      expect((await limiter.peek(KEY)).remaining).toBe(1);
    });

    it('hold waits for its turn', async () => {
      const limiter = limiterFor(5);
      let running = 0;
      let most = 0;
      const work = async () => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 10));
        running--;
      };
      await time.of(() => Promise.all(Array.from({ length: 50 }, () => limiter.hold(KEY, work, { timeout: '10s' }))));
      expect(most).toBe(5);
    });

    it('hold renews a lease that would end before its work', async () => {
      const limiter = limiterFor(1, 300);
      await limiter.hold(KEY, async () => {
        await time.pass(700);
        expect((await limiter.peek(KEY)).remaining).toBe(0);
      });
      expect((await limiter.peek(KEY)).remaining).toBe(1);
    });

    it('ends leases when their time to live is over', async () => {
      const limiter = limiterFor(1, 100);
      const { lease } = await limiter.consume(KEY);
      await time.pass(100);
      expect(await limiter.consume(KEY)).toMatchObject({ allowed: true });
      expect(await lease!.renew()).toBe(false);
    });
  });

  describe('wrong arguments', () => {
    let limiter: Limiter;
    let held: Limiter;
    beforeAll(() => {
      limiter = limiterOf({ algo: 'gcra', rate: 5, interval: '1s' });
      held = limiterOf({ algo: 'concurrency', limit: 5, ttl: '1s' });
    });

    it.each<[string, () => Promise<unknown>, string]>([
      ['a cost', () => limiter.acquire(KEY, { cost: -1 }), 'cost: expected a whole number >= 0, received -1'],
      ['a key', () => limiter.acquire(''), "key: expected a string that is not empty, received ''"],
      [
        'a timeout',
        () => limiter.acquire(KEY, { timeout: 'soon' }),
        "timeout: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), at most 1 year, received 'soon'",
      ],
      [
        'a negative timeout',
        () => limiter.acquire(KEY, { timeout: -1 }),
        "timeout: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), at most 1 year, received -1",
      ],
      ['a signal', () => limiter.acquire(KEY, { signal: wrong({}) }), 'signal: expected an AbortSignal, received {}'],
      [
        'a longest wait',
        () => limiter.reserve(KEY, { maxWait: '2y' }),
        "maxWait: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), at most 1 year, received '2y'",
      ],
      ['units to refund', () => limiter.refund(KEY, 1.5), 'units: expected a whole number >= 1, received 1.5'],
      [
        'whether it has to reach the store',
        () => limiter.refund(KEY, 1, { strict: wrong('yes') }),
        "strict: expected true or false, received 'yes'",
      ],
      ['units to charge', () => limiter.penalize(KEY, wrong('1')), "units: expected a whole number >= 1, received '1'"],
      [
        'a block of nothing',
        () => limiter.block(KEY, 0),
        "duration: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), at most 1 year, received 0",
      ],
      [
        'a block',
        () => limiter.block(KEY, NaN),
        "duration: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), at most 1 year, received NaN",
      ],
      ['work', () => held.hold(KEY, wrong('work')), "hold: expected a function, received 'work'"],
      [
        'a limit to hold',
        () => limiter.hold(KEY, () => 1),
        "of algo 'gcra' gives no lease to hold. Use algo 'concurrency'",
      ],
      [
        'a limit to reserve',
        () => held.reserve(KEY),
        'does not support reservations. Use fixed-window, calendar-window, budget, sliding-window, sliding-log, token-bucket, gcra or leaky-bucket',
      ],
      ['a limit to refund', () => held.refund(KEY, 1), 'cannot be refunded. Release its leases instead'],
      ['a limit to penalize', () => held.penalize(KEY, 1), 'cannot be penalized. Release its leases instead'],
      [
        'an actual cost',
        async () => (await limiter.reserve(KEY)).settle(-1),
        'actual cost: expected a whole number >= 0, received -1',
      ],
      [
        'a number of windows',
        () => limiter.history(KEY, 0),
        'number of windows: expected a whole number >= 1, received 0',
      ],
    ])('%s', async (_, call, message) => {
      const reason = await reasonOf(call());
      expect(reason).toBeInstanceOf(RateLimitArgumentError);
      expect((reason as Error).message).toContain(message);
    });
  });

  it('returns the slices of a sliding window', async () => {
    const limiter = limiterOf({ algo: 'sliding-window', rate: 10, interval: '1h', slices: 6 });
    await limiter.consume(KEY, 3);
    const slices = await limiter.history(KEY);
    expect(slices).toHaveLength(7);
    expect(slices.map(({ count }) => count)).toEqual([3, 0, 0, 0, 0, 0, 0]);
    expect(slices[0]!.end - slices[0]!.start).toBe(600_000);
    expect(await limiter.history(KEY, 1)).toEqual(slices.slice(0, 1));
  });

  it('rejects waiting calls when the app closes', async () => {
    const closing = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(options())] }).compile();
    await closing.init();
    const limiter = closing.get(LimiterService).for({ algo: 'sliding-log', rate: 1, interval: '1h' });
    await limiter.consume(KEY);
    const waiting = reasonOf(limiter.acquire(KEY));
    await time.settle();
    await closing.close();
    expect(await waiting).toMatchObject({ name: 'RateLimitStoreError', message: 'the app is shutting down' });
  });
});
