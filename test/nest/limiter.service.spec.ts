import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitCheck,
  type LimitDefinition,
  LimiterService,
  type MemoryStore,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
} from '../../lib/index.js';
import { createTestingStore, TestClock } from '../../lib/testing/index.js';

const few: LimitDefinition = { name: 'few', algo: 'fixed-window', rate: 3, interval: '1m' };
const many: LimitDefinition = { name: 'many', algo: 'token-bucket', rate: 10, interval: '10s' };

describe('LimiterService', () => {
  const clock = new TestClock();
  let app: TestingModule;
  let store: MemoryStore;
  let service: LimiterService;

  beforeEach(async () => {
    store = createTestingStore({ clock });
    app = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ store, define: { defined: { ...few, name: 'defined', cost: 2 } } })],
    }).compile();
    await app.init();
    service = app.get(LimiterService);
  });

  afterEach(async () => {
    await app.close();
    await store.close();
  });

  it('consumes, peeks and resets', async () => {
    const limiter = service.for(few);
    expect(limiter.name).toBe('few');
    expect(await limiter.peek('user:1')).toMatchObject({ allowed: true, remaining: 3, resetAfterMs: 0 });
    expect(await limiter.consume('user:1', 2)).toEqual({
      allowed: true,
      limit: 'few',
      quota: 3,
      remaining: 1,
      retryAfterMs: 0,
      resetAfterMs: 60_000,
      delayMs: 0,
      source: 'memory',
    });
    expect(await limiter.consume('user:1', 2)).toMatchObject({ allowed: false, remaining: 1, retryAfterMs: 60_000 });
    expect(await limiter.peek('user:1', 2)).toMatchObject({ allowed: false });
    expect(await limiter.peek('user:1')).toMatchObject({ allowed: true, remaining: 1 });
    expect(await service.for({ ...few }).peek('user:1')).toMatchObject({ remaining: 1 });
    await limiter.reset('user:1');
    expect(await limiter.peek('user:1')).toMatchObject({ remaining: 3 });
  });

  it('takes the cost of the definition unless told otherwise', async () => {
    const limiter = service.for('defined');
    expect(await limiter.consume('a')).toMatchObject({ remaining: 1 });
    expect(await limiter.consume('a', 1)).toMatchObject({ remaining: 0 });
    expect(await limiter.consume('b', 4)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
  });

  it('shows nothing of a decision but what is public', async () => {
    const shaper = service.for({ name: 'shaper', algo: 'leaky-bucket', rate: 1, interval: '1s' });
    await shaper.consume('a');
    const decision = await shaper.consume('a');
    expect(decision.delayMs).toBe(1000);
    expect(decision).not.toHaveProperty('ticket');
    expect((await service.check([{ limit: shaper, key: 'a' }])).decisions[0]).not.toHaveProperty('ticket');
  });

  it('checks several limits at once, all or nothing', async () => {
    const checks: LimitCheck[] = [
      { limit: few, key: 'user:1', cost: 2 },
      { limit: service.for(many), key: 'ip:1' },
      { limit: 'defined', key: 'user:1', cost: 1 },
    ];
    const first = await service.check(checks);
    expect(first.decisions.map(({ limit, remaining }) => [limit, remaining])).toEqual([
      ['few', 1],
      ['many', 9],
      ['defined', 2],
    ]);
    expect(first).toMatchObject({ allowed: true, tightest: { limit: 'few' } });
    const second = await service.check(checks);
    expect(second).toMatchObject({ allowed: false, tightest: { limit: 'few', allowed: false } });
    expect(await service.for(many).peek('ip:1')).toMatchObject({ remaining: 9 });
  });

  it('names the refusal with the longest wait as the tightest', async () => {
    const brief: LimitDefinition = { name: 'brief', algo: 'fixed-window', rate: 1, interval: '1s' };
    const long: LimitDefinition = { name: 'long', algo: 'fixed-window', rate: 1, interval: '1h' };
    const shadow: LimitDefinition = { name: 'shadow', algo: 'fixed-window', rate: 1, interval: '1d', mode: 'shadow' };
    const checks = [brief, long, shadow].map((limit) => ({ limit, key: 'a' }));
    expect(await service.check(checks)).toMatchObject({ allowed: true, tightest: { limit: 'long' } });
    expect(await service.check(checks)).toMatchObject({ allowed: false, tightest: { limit: 'long' } });
    expect(await service.check(checks.slice(2))).toMatchObject({ allowed: true, tightest: { limit: 'shadow' } });
  });

  it.each([NaN, -1, 1.5, '1', Infinity, 2 ** 53, null])('refuses the cost %p before anything is sent', async (cost) => {
    const check = jest.spyOn(store, 'check');
    const limiter = service.for(few);
    await expect(limiter.consume('a', cost as number)).rejects.toThrow(RateLimitArgumentError);
    await expect(limiter.peek('a', cost as number)).rejects.toThrow(RateLimitArgumentError);
    if (cost !== null) {
      const checks = [
        { limit: many, key: 'a' },
        { limit: few, key: 'a', cost: cost as number },
      ];
      await expect(service.check(checks)).rejects.toThrow(/^cost: expected a whole number >= 0, received /);
    }
    expect(check).not.toHaveBeenCalled();
  });

  it.each([undefined, null, '', 7, {}])('refuses the key %p before anything is sent', async (key) => {
    const check = jest.spyOn(store, 'check');
    const limiter = service.for(few);
    const calls = [
      limiter.consume(key as string),
      limiter.peek(key as string),
      limiter.reset(key as string),
      limiter.history(key as string),
      service.check([{ limit: few, key: key as string }]),
    ];
    for (const call of calls) await expect(call).rejects.toThrow(RateLimitArgumentError);
    expect(check).not.toHaveBeenCalled();
  });

  it('refuses a check of nothing, and of one limit twice for one key', async () => {
    await expect(service.check([])).rejects.toThrow('expected at least one { limit, key }, received no limits');
    const twice = [
      { limit: few, key: 'a' },
      { limit: service.for(few), key: 'a' },
    ];
    await expect(service.check(twice)).rejects.toThrow(
      "limit 'few' is listed twice for the key 'a'. List it once, with the sum of the costs",
    );
    await expect(service.check([twice[0] as LimitCheck, { limit: few, key: 'b' }])).resolves.toMatchObject({
      allowed: true,
    });
    expect(await service.for(few).peek('a')).toMatchObject({ remaining: 2 });
  });

  it.each([3, 8, 9, 20])(
    'refuses a check of %i limits that holds one of them twice, and charges none',
    async (count) => {
      const checks = Array.from({ length: count }, (_, i) => ({ limit: few, key: `key ${i}` }));
      await expect(service.check(checks)).resolves.toMatchObject({ allowed: true });
      for (const [first, second] of [
        [0, count - 1],
        [1, 2],
      ]) {
        const twice = checks.with(second!, checks[first!]!);
        const refusal = `check: limit 'few' is listed twice for the key 'key ${first}'`;
        await expect(service.check(twice)).rejects.toThrow(refusal);
      }
      expect(await service.for(few).peek('key 1')).toMatchObject({ remaining: 2 });
    },
  );

  it('tells keys apart whatever they hold', async () => {
    const keys = ['x'.repeat(10_240), `${'x'.repeat(10_239)}y`, 'a\nb', 'a', '{a}', 'a:b', '\0', '😀', ' '];
    const limiter = service.for(few);
    for (const key of keys) expect(await limiter.consume(key)).toMatchObject({ remaining: 2 });
    for (const key of keys) expect(await limiter.peek(key)).toMatchObject({ remaining: 2 });
  });

  it('reads the windows of a calendar', async () => {
    const daily = service.for({ name: 'daily', algo: 'calendar-window', rate: 10, period: 'day', retain: '7d' });
    await daily.consume('a', 4);
    clock.advance('1d');
    await daily.consume('a', 2);
    expect((await daily.history('a')).map(({ count }) => count)).toEqual([2, 4]);
    expect((await daily.history('a', 1)).map(({ count }) => count)).toEqual([2]);
    await expect(daily.history('a', 0)).rejects.toThrow('expected a whole number >= 1, received 0');
    await expect(service.for(few).history('a')).rejects.toThrow("limit 'few' keeps no history");
  });

  it('throws for names that are not defined and limits that are wrong', () => {
    expect(() => service.for('nope')).toThrow(RateLimitConfigError);
    expect(() => service.for({ ...few, rate: 0 })).toThrow(
      'LimiterService.for.rate: expected a whole number >= 1, received 0',
    );
  });
});
