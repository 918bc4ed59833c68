import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Redis } from 'ioredis';
import type { Subscription } from 'rxjs';
import {
  type Decision,
  type DecisionEvent,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitModule,
} from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { DecisionStream } from '../../../lib/storage/telemetry/decision-stream.js';
import { adapters, HttpApp } from '../../e2e/http-app.js';
import { connectRedis, freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const CLIENT = 'ip:127.0.0.1';
const hash = (identity: string) => createHash('sha256').update(identity).digest('base64url').slice(0, 16);

const five: LimitDefinition = { name: 'five', algo: 'fixed-window', rate: 5, interval: '1m' };
const one: LimitDefinition = { name: 'one', algo: 'fixed-window', rate: 1, interval: '1m' };

@Controller()
class ReportsController {
  @Get('both')
  @RateLimit(five, one)
  both() {}

  @Get('watched')
  @RateLimit({ ...one, name: 'watched', mode: 'shadow' })
  watched() {}

  @Get('users')
  @RateLimit({ ...one, name: 'users', phase: 'authenticated', cost: 3 })
  users() {}
}

const apps: { close(): Promise<void> }[] = [];
const subscriptions: Subscription[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  for (const subscription of subscriptions.splice(0)) subscription.unsubscribe();
  for (const app of apps.splice(0)) await app.close();
});

function listen(service: LimiterService): DecisionEvent[] {
  const events: DecisionEvent[] = [];
  subscriptions.push(service.decisions$.subscribe((event) => events.push(event)));
  return events;
}

describe.each(adapters)('decisions$ over HTTP with %s', (framework) => {
  it('tells of each limit of each request, in both phases', async () => {
    const app = await HttpApp.start(framework, { controllers: [ReportsController], limits: { telemetry: false } });
    apps.push(app);
    const events = listen(app.nest.get(LimiterService));
    await app.statuses(2, '/both');
    await app.statuses(2, '/watched');
    await app.statuses(1, '/users');
    const common = { identity: hash(CLIENT), source: 'memory', latencyMs: expect.any(Number) };
    const at = (path: string) => ({ ...common, cost: 1, retryAfterMs: 0, route: { method: 'GET', path } });
    const about = at('/both');
    expect(events).toEqual([
      { ...about, limit: 'five', outcome: 'allowed', quota: 5, remaining: 4, nearLimit: false },
      { ...about, limit: 'one', outcome: 'allowed', quota: 1, remaining: 0, nearLimit: true },
      { ...about, limit: 'five', outcome: 'allowed', quota: 5, remaining: 4, nearLimit: false },
      { ...about, limit: 'one', outcome: 'refused', quota: 1, remaining: 0, retryAfterMs: 60_000, nearLimit: false },
      { ...at('/watched'), limit: 'watched', outcome: 'allowed', quota: 1, remaining: 0, nearLimit: true },
      {
        ...at('/watched'),
        limit: 'watched',
        outcome: 'shadow-refused',
        quota: 1,
        remaining: 0,
        retryAfterMs: 60_000,
        nearLimit: false,
      },
      {
        ...at('/users'),
        limit: 'users',
        outcome: 'refused',
        quota: 1,
        remaining: 1,
        cost: 3,
        retryAfterMs: Infinity,
        nearLimit: false,
      },
    ]);
    for (const { latencyMs } of events) expect(latencyMs).toBeGreaterThan(0);
    expect(JSON.stringify(events)).not.toContain('127.0.0.1');
  });
});

describe('decisions$ for code', () => {
  let service: LimiterService;

  beforeEach(async () => {
    const app = await HttpApp.start('express', { limits: { telemetry: false } });
    apps.push(app);
    service = app.nest.get(LimiterService);
  });

  it('tells of consume, check, acquire and reserve, and not of peek', async () => {
    const events = listen(service);
    const limiter = service.for({ name: 'five', algo: 'token-bucket', rate: 5, interval: '1m' });
    await limiter.peek('a');
    await limiter.consume('a', 2);
    await service.check([{ limit: limiter, key: 'b' }]);
    await limiter.acquire('c');
    await limiter.reserve('d', { cost: 3 });
    await limiter.consume('a', 4);
    expect(events.map(({ identity, cost, outcome }) => [identity, cost, outcome])).toEqual([
      [hash('a'), 2, 'allowed'],
      [hash('b'), 1, 'allowed'],
      [hash('c'), 1, 'allowed'],
      [hash('d'), 3, 'allowed'],
      [hash('a'), 4, 'refused'],
    ]);
  });

  it('tells of the offences of limits that have steps of blocks, and of no others', async () => {
    const events = listen(service);
    const steps = { ...one, name: 'steps', blockFor: ['1m', '1h'], forgetAfter: '1d' } as const;
    for (const limit of [steps, { ...one, blockFor: '1m' }] as const) {
      for (let call = 0; call < 3; call++) await service.for(limit).consume('a');
    }
    expect(events.map(({ limit, offences }) => [limit, offences])).toEqual([
      ['steps', 0],
      ['steps', 1],
      ['steps', 1],
      ['one', undefined],
      ['one', undefined],
      ['one', undefined],
    ]);
    expect(events.filter((event) => 'offences' in event)).toHaveLength(3);
  });

  it('tells all subscribers until they leave, and ends with the app', async () => {
    const limiter = service.for(five);
    const early: DecisionEvent[] = [];
    const leaving = service.decisions$.subscribe((event) => early.push(event));
    const events = listen(service);
    let completed = false;
    subscriptions.push(service.decisions$.subscribe({ complete: () => (completed = true) }));
    await limiter.consume('a');
    leaving.unsubscribe();
    await limiter.consume('a');
    expect([early.length, events.length, completed]).toEqual([1, 2, false]);
    await apps.pop()!.close();
    expect(completed).toBe(true);
  });

  it('does nothing while nobody listens', async () => {
    const publish = jest.spyOn(DecisionStream.prototype, 'publish');
    const limiter = service.for(five);
    await limiter.consume('a');
    await limiter.acquire('b');
    expect(publish).not.toHaveBeenCalled();
    const events = listen(service);
    await limiter.consume('a');
    expect(events).toHaveLength(1);
    expect(publish).toHaveBeenCalledTimes(1);
    subscriptions.pop()!.unsubscribe();
    await limiter.consume('a');
    expect(publish).toHaveBeenCalledTimes(1);
  });

  const nears = async (limit: LimitDefinition, costs: number[]) => {
    const events = listen(service);
    const limiter = service.for(limit);
    for (const cost of costs) await limiter.consume('a', cost);
    return events.map(({ nearLimit }) => nearLimit);
  };

  it('says once when four fifths are used', async () => {
    expect(await nears({ ...five, rate: 10 }, [7, 1, 1, 1, 1])).toEqual([false, true, false, false, false]);
  });

  it('says so of one call that goes beyond', async () => {
    expect(await nears({ ...five, rate: 10 }, [10, 1])).toEqual([true, false]);
  });

  it("goes by the limit's own share, exactly", async () => {
    expect(await nears({ ...five, rate: 100, nearLimit: 0.55 }, [54, 1, 1])).toEqual([false, true, false]);
    expect(await nears({ ...five, name: 'end', nearLimit: 1 }, [4, 1])).toEqual([false, true]);
    expect(await nears({ ...five, name: 'start', nearLimit: 0.001 }, [1, 1])).toEqual([true, false]);
  });

  it('says so of a shadow, and of none that took nothing since another refused', async () => {
    const events = listen(service);
    const almost: LimitDefinition = { ...one, name: 'almost', mode: 'shadow' };
    await service.for(one).consume('a');
    await service.check([almost, one].map((limit) => ({ limit, key: 'a' })));
    await service.for(almost).consume('a');
    expect(events.map(({ limit, outcome, nearLimit }) => [limit, outcome, nearLimit])).toEqual([
      ['one', 'allowed', true],
      ['almost', 'allowed', false],
      ['one', 'refused', false],
      ['almost', 'allowed', true],
    ]);
  });

  it('says nothing of reservations from the future, which were near before', async () => {
    const events = listen(service);
    const limiter = service.for({ name: 'tokens', algo: 'gcra', rate: 10, interval: '1h' });
    for (const cost of [9, 3, 3]) await limiter.reserve('a', { cost });
    expect(events.map(({ nearLimit }) => nearLimit)).toEqual([true, false, false]);
  });
});

describe('the share of a quota', () => {
  it.each([
    [0.8, 10, 8],
    [0.55, 100, 55],
    [0.7, 10, 7],
    [0.8, 1, 1],
    [0.8, 3, 3],
    [1e-9, 5, 1],
    [1, 999_999_999_999_999, 999_999_999_999_999],
  ])('%p of %p is from %p units on', (nearLimit, rate, units) => {
    const options = { algo: 'fixed-window', rate, interval: '1h' } as const;
    expect(new CompiledLimit(options, { location: 'test', nearLimit }).nearFrom).toBe(units);
  });
});

describe('decisions$ on Redis', () => {
  let redis: Redis;
  let service: LimiterService;
  let events: DecisionEvent[];

  beforeEach(async () => {
    redis = await connectRedis();
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ redis, prefix: freshPrefix(), timeout: PATIENCE, telemetry: false })],
    }).compile();
    testing.useLogger(false);
    await testing.init();
    apps.push({ close: () => testing.close().then(() => redis.quit().then(() => undefined)) });
    service = testing.get(LimiterService);
    events = listen(service);
  });

  /** Asks until it is another who decides; what that one has to be told of takes a moment. */
  async function consumeUntil(limit: LimitDefinition, source: Decision['source']): Promise<string[]> {
    const limiter = service.for(limit);
    await until(async () => {
      if (events.at(-1)?.source !== source) await limiter.consume('a');
      return events.at(-1)?.source === source;
    });
    return events.map((event) => `${event.limit} ${event.outcome} ${event.source}`);
  }

  it('tells of what Redis decided and of refusals that are remembered', async () => {
    const told = await consumeUntil(one, 'cache');
    expect(told[0]).toBe('one allowed redis');
    expect(told.slice(-2)).toEqual(['one refused redis', 'one refused cache']);
  });

  it('tells of offences, also where a refusal is remembered', async () => {
    await consumeUntil({ ...one, blockFor: ['1m', '1h'], forgetAfter: '1d' }, 'cache');
    expect(events.map(({ source, offences }) => [source, offences])).toEqual([
      ['redis', 0],
      ...Array.from({ length: events.length - 2 }, () => ['redis', 1]),
      ['cache', 1],
    ]);
  });

  it('tells of units that were taken in advance', async () => {
    const told = await consumeUntil({ ...five, rate: 100, prefetch: { units: 10, ttl: '5s' } }, 'prefetch');
    expect(told.at(-1)).toBe('five allowed prefetch');
  });

  it('tells of what is counted in process beside Redis', async () => {
    await service.check([
      { limit: { ...five, scope: 'instance' }, key: 'b' },
      { limit: one, key: 'b' },
    ]);
    expect(events.map(({ limit, source }) => [limit, source])).toEqual([
      ['five', 'memory'],
      ['one', 'redis'],
    ]);
  });
});
