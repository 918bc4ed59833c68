import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
  type Store,
} from '../../../../lib/index.js';
import { createTestingStore, TestClock } from '../../../../lib/testing/index.js';

const define = {
  api: { algo: 'fixed-window', rate: 10, interval: '1m', usage: { keep: '400d', timezone: 'Europe/Berlin' } },
  money: { algo: 'budget', limit: 1000, period: 'month', timezone: 'Asia/Tokyo', usage: '400d' },
  shadow: { algo: 'gcra', rate: 2, interval: '1h', mode: 'shadow', usage: '30d' },
  plain: { algo: 'gcra', rate: 10, interval: '1s' },
  own: { algo: 'gcra', rate: 10, interval: '1s', scope: 'instance', usage: '30d' },
  plan: {
    algo: 'calendar-window',
    rate: 10,
    period: 'day',
    rollover: 1,
    hold: '1h',
    onLapse: 'release',
    usage: '30d',
  },
} satisfies Record<string, LimitDefinition>;

async function all<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const row of rows) list.push(row);
  return list;
}

describe('the usage of a limit', () => {
  let clock: TestClock;
  let app: TestingModule;
  let store: MemoryStore;
  let limiters: LimiterService;

  beforeEach(async () => {
    clock = new TestClock('2026-11-22T22:30:00Z');
    store = createTestingStore({ clock });
    app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ store, define })] }).compile();
    await app.init();
    limiters = app.get(LimiterService);
  });
  afterEach(async () => {
    await app.close();
    await store.close();
  });

  it('is told by days of its time zone, with their sum', async () => {
    const api = limiters.for('api');
    expect(await api.usage('user:1')).toEqual({ total: 0, days: [] });
    await api.consume('user:1', 4);
    clock.advance('1h');
    await api.consume('user:1', 5);
    await api.consume('user:1', 6);
    expect(await api.usage('user:1')).toEqual({
      total: 9,
      days: [
        { day: '2026-11-22', units: 4 },
        { day: '2026-11-23', units: 5 },
      ],
    });
  });

  it('has the days of the time zone of the limit, unless another one is given', async () => {
    const money = limiters.for('money');
    await money.consume('user:1', 4);
    expect((await money.usage('user:1')).days).toEqual([{ day: '2026-11-23', units: 4 }]);
  });

  it('is read from a date, a time or a Date on, up to one that is not part of it', async () => {
    const api = limiters.for('api');
    for (let i = 1; i <= 4; i++) {
      await api.consume('user:1', i);
      clock.advance('1d');
    }
    const units = async (range: object) => (await api.usage('user:1', range)).days.map((day) => day.units);
    expect(await units({ from: '2026-11-23' })).toEqual([2, 3, 4]);
    expect(await units({ to: '2026-11-24' })).toEqual([1, 2]);
    expect(await units({ from: '2026-11-23', to: '2026-11-25' })).toEqual([2, 3]);
    // Midnight in Berlin is an hour earlier in UTC.
    expect(await units({ from: '2026-11-23T22:59:59Z', to: '2026-11-23T23:00Z' })).toEqual([2]);
    expect(await units({ from: new Date('2026-11-23T23:00:00Z'), to: Date.UTC(2026, 10, 24, 23) + 1 })).toEqual([3, 4]);
    expect(await units({ from: '2026-11-24', to: '2026-11-24' })).toEqual([]);
    expect(await units({ from: '2027-01-01' })).toEqual([]);
    const rows = await all(api.exportUsage({ from: '2026-11-23', to: '2026-11-25', batch: 1 }));
    expect(rows).toEqual([
      { key: 'user:1', day: '2026-11-23', units: 2 },
      { key: 'user:1', day: '2026-11-24', units: 3 },
    ]);
  });

  it('is exported by the rate of each key, so that what moves on stays', async () => {
    const plan = limiters.for('plan');
    await limiters.setRate('plan', { rate: 50 }, { key: 'user:1' });
    await plan.reserve('user:1', { cost: 10 });
    clock.advance('1d');
    expect(await all(plan.exportUsage())).toEqual([]);
    // What was held lapsed on its day, so all of its rate was left.
    expect(await plan.peek('user:1')).toMatchObject({ quota: 100 });
  });

  it('is exported key by key, and adds up to that of all keys', async () => {
    const api = limiters.for('api');
    for (let i = 0; i < 25; i++) await api.consume(`user:${i}`, 1 + (i % 3));
    const rows = await all(api.exportUsage({ batch: 4 }));
    expect(rows).toHaveLength(25);
    for (const { key, units } of rows) expect((await api.usage(key)).total).toBe(units);
  });

  it('lacks what is given back, and what a refused or passed call did not charge', async () => {
    const api = limiters.for('api');
    await api.consume('user:1', 9);
    await api.consume('user:1', 9);
    await api.peek('user:1', 1);
    await api.refund('user:1', 2);
    await api.reset('user:1');
    await api.penalize('user:1', 3);
    expect((await api.usage('user:1')).total).toBe(10);
    const shadow = limiters.for('shadow');
    for (let i = 0; i < 5; i++) await shadow.consume('user:1');
    expect((await shadow.usage('user:1')).total).toBe(2);
    await limiters.setMode('shadow', 'off');
    await shadow.consume('user:1');
    expect((await shadow.usage('user:1')).total).toBe(2);
  });

  it('goes on through changed rates', async () => {
    const api = limiters.for('api');
    await api.consume('user:1', 9);
    await limiters.setRate('api', { rate: 20 }, { inherit: 'reset' });
    await api.consume('user:1', 19);
    await limiters.setRate('api', { rate: 5 }, { key: 'user:1' });
    await api.consume('user:1', 1);
    expect((await api.usage('user:1')).total).toBe(28);
    expect(await all(api.exportUsage())).toMatchObject([{ key: 'user:1', units: 28 }]);
  });

  it('of an instance is that of the instance', async () => {
    const own = limiters.for('own');
    await own.consume('user:1', 3);
    expect((await own.usage('user:1')).total).toBe(3);
    expect(await all(own.exportUsage())).toMatchObject([{ key: 'user:1', units: 3 }]);
  });

  it('is read from a store of the app that hands its calls on to one of ours', async () => {
    const inner = createTestingStore({ clock });
    const wrapping: Store & { read(): string } = {
      read: () => 'another method of the app',
      check: (checks) => inner.check(checks),
      reserve: (entry) => inner.reserve(entry),
      refund: (refunds) => inner.refund(refunds),
      penalize: (charge) => inner.penalize(charge),
      block: (counter, durationMs) => inner.block(counter, durationMs),
      renew: (lease) => inner.renew(lease),
      reset: (counters) => inner.reset(counters),
      history: (counter) => inner.history(counter),
      usage: (counter, range) => inner.usage(counter, range),
      usageOf: (...args) => inner.usageOf(...args),
      close: () => inner.close(),
    };
    const imports = [RateLimitModule.forRoot({ store: wrapping, define })];
    const other = await Test.createTestingModule({ imports }).compile();
    await other.init();
    const api = other.get(LimiterService).for('api');
    await api.consume('user:1', 4);
    expect((await api.usage('user:1')).total).toBe(4);
    expect(await all(api.exportUsage())).toMatchObject([{ key: 'user:1', units: 4 }]);
    await other.close();
  });

  it('is read by the methods of a class that extends one of our stores', async () => {
    const read: string[] = [];
    class Own extends MemoryStore {
      read = () => 'another method of the app';

      override usage(...asked: Parameters<MemoryStore['usage']>) {
        read.push('usage');
        return super.usage(...asked);
      }

      override usageOf(...asked: Parameters<MemoryStore['usageOf']>) {
        read.push('usageOf');
        return super.usageOf(...asked);
      }
    }
    const imports = [RateLimitModule.forRoot({ store: new Own(), define })];
    const other = await Test.createTestingModule({ imports }).compile();
    await other.init();
    const api = other.get(LimiterService).for('api');
    await api.consume('user:1', 4);
    expect((await api.usage('user:1')).total).toBe(4);
    expect(await all(api.exportUsage())).toMatchObject([{ key: 'user:1', units: 4 }]);
    expect(read).toEqual(['usage', 'usageOf']);
    await other.close();
  });

  it('is not there without the option, which the error names', async () => {
    const plain = limiters.for('plain');
    await expect(plain.usage('user:1')).rejects.toThrow(
      "limit 'plain' records no usage. Set the option 'usage' of the limit, such as { usage: '400d' }",
    );
    await expect(plain.usage('user:1')).rejects.toThrow(RateLimitArgumentError);
    await expect(all(plain.exportUsage())).rejects.toThrow(RateLimitArgumentError);
  });

  it.each([
    [
      { from: 'yesterday' },
      "from: expected a Date, milliseconds since the epoch, or an ISO 8601 text such as '2026-11-01' or '2026-11-01T12:00Z', received 'yesterday'",
    ],
    [{ to: new Date(NaN) }, /to: expected a Date.+, received Invalid Date/],
    [{ to: null }, /to: expected a Date.+, received null/],
    [
      { from: '2026-11-02', to: '2026-11-01' },
      "expected a time no later than 'to' (2026-11-01T00:00:00.000+01:00), received 2026-11-02T00:00:00.000+01:00",
    ],
    [
      { from: 8.64e15, to: '2026-11-01' },
      "expected a time no later than 'to' (2026-11-01T00:00:00.000+01:00), received +275760-09-13T00:00:00.000Z",
    ],
    [{ since: 1 }, "unknown option 'since', expected one of from, to"],
    [[], 'expected an object of options, received []'],
  ])('refuses %j', async (range, message) => {
    const api = limiters.for('api');
    await expect(api.usage('user:1', range as never)).rejects.toThrow(message);
    await expect(all(api.exportUsage(range as never))).rejects.toThrow(message);
  });

  it('refuses a wrong key or size of a page', async () => {
    const api = limiters.for('api');
    await expect(api.usage('')).rejects.toThrow(RateLimitArgumentError);
    for (const batch of [0, 1.5, '5', 10_001]) {
      await expect(all(api.exportUsage({ batch: batch as number }))).rejects.toThrow(
        'expected a whole number >= 1 and <= 10000',
      );
    }
  });
});

/** Starts an app with this limit. */
const compiled = (limit: unknown, more: Partial<RateLimitModuleOptions> = {}) =>
  Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define: { api: limit as never }, ...more })] })
    .compile()
    .then((app) => app.init());

describe('the option usage', () => {
  const gcra = { algo: 'gcra', rate: 1, interval: '1s' };

  it.each([
    [
      true,
      /usage: expected milliseconds or a duration such as '400d' \(units: ms, s, m, h, d, w, y\), at least 1 day and at most 10 years; or \{ keep, timezone\?.+, received true/,
    ],
    [
      '1h',
      /usage: expected milliseconds or a duration such as '400d' \(units: ms, s, m, h, d, w, y\), at least 1 day and at most 10 years.+, received '1h'/,
    ],
    ['11y', /usage: expected .+, received '11y'/],
    [NaN, /usage: expected .+, received NaN/],
    [
      {},
      "missing, expected milliseconds or a duration such as '400d' (units: ms, s, m, h, d, w, y), at least 1 day and at most 10 years",
    ],
    [{ keep: '0d' }, /usage\.keep: expected .+, received '0d'/],
    [
      { keep: '40d', timezone: 'Mars' },
      "usage.timezone: expected an IANA time zone such as 'UTC' or 'Europe/Berlin', received 'Mars'",
    ],
    [{ keep: '40d', zone: 'UTC' }, "usage: unknown option 'zone', expected one of keep, timezone"],
  ])('refuses %j', async (usage, message) => {
    const start = compiled({ ...gcra, usage });
    await expect(start).rejects.toThrow(RateLimitConfigError);
    await expect(start).rejects.toThrow(message);
  });

  it.each([
    [
      { algo: 'concurrency', limit: 1, ttl: '1m', usage: '40d' },
      "option 'usage' is not for 'concurrency', since its units are given back when the work ends",
    ],
    [{ algo: 'adaptive', scope: 'instance', usage: '40d' }, "'usage'"],
    [{ ...gcra, usage: '40d', prefetch: { units: 5, ttl: '1s' } }, "options 'usage' and 'prefetch' exclude each other"],
  ])('refuses %j', async (limit, message) => {
    await expect(compiled(limit)).rejects.toThrow(message);
  });

  it.each(['usage', 'credits'])(
    "is, as 'credits' are, of limits that code finds by their names: refuses %s",
    async (option) => {
      const limit = { name: 'plan', algo: 'calendar-window', rate: 1, period: 'day', key: 'global' } as const;
      const given = { ...limit, ...(option === 'usage' ? { usage: '40d' } : { credits: true }) } as LimitDefinition;
      const start = Test.createTestingModule({ imports: [RateLimitModule.forRoot({ limits: [given] })] }).compile();
      await expect(start).rejects.toThrow(`limits[0]: option '${option}' has no effect here`);
      @Controller()
      class Api {
        @Get()
        @RateLimit(given)
        get() {}
      }
      const app = await Test.createTestingModule({
        imports: [RateLimitModule.forRoot()],
        controllers: [Api],
      }).compile();
      await expect(app.init()).rejects.toThrow(`@RateLimit on Api.get: option '${option}' has no effect here`);
      await app.close();
    },
  );

  it('is none of the defaults', async () => {
    await expect(compiled(gcra, { defaults: { usage: '40d' } as never })).rejects.toThrow(
      "defaults: unknown option 'usage'",
    );
  });
});
