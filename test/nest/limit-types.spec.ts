import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  defineLimit,
  defineLimits,
  type LimitDefinition,
  LimiterService,
  type PolicyData,
  RateLimit,
  RateLimitModule,
} from '../../lib/index.js';

// The type check is what tests these: each line below says that the next one does not compile.

it('compiles no wrong mix in what a factory gives', () => {
  RateLimitModule.forRootAsync({
    useFactory: () => ({ limits: [{ algo: 'gcra', rate: 1, interval: '1s', burst: 5, key: 'user' }] }),
  });
  RateLimitModule.forRootAsync({
    useFactory: () => Promise.resolve({ define: { login: { algo: 'concurrency', limit: 1, ttl: '1s' } } }),
  });
  RateLimitModule.forRootAsync({
    // @ts-expect-error -- queue belongs to leaky-bucket
    useFactory: () => ({ limits: [{ algo: 'gcra', rate: 1, interval: '1s', queue: 5 }] }),
  });
  RateLimitModule.forRootAsync({
    // @ts-expect-error -- slices belong to sliding-window
    useFactory: () => ({ define: { login: { algo: 'sliding-log', rate: 1, interval: '1s', slices: 5 } } }),
  });
  RateLimitModule.forRootAsync({
    // @ts-expect-error -- a promise makes no difference
    useFactory: async () => ({ limits: [{ algo: 'concurrency', limit: 1, ttl: '1s', rate: 1 }] }),
  });
  RateLimitModule.forRootAsync({
    // @ts-expect-error -- the interval is missing
    useFactory: () => ({ limits: [{ algo: 'gcra', rate: 1 }] }),
  });
  RateLimitModule.forRootAsync({
    // @ts-expect-error -- no option of the module has such a value
    useFactory: () => ({ onStoreError: 'open' }),
  });
});

it('compiles no wrong mix in what a function gives', () => {
  RateLimit(() => ({ algo: 'gcra', rate: 1, interval: '1s' }));
  RateLimit(() => Promise.resolve(null));
  RateLimit(() => ({
    algo: 'gcra',
    rate: 1,
    interval: '1s',
    warmUp: { for: '5m', from: 0.3 },
    reserveFor: { critical: 0.2 },
  }));
  RateLimit(() => ({ algo: 'gcra', rate: 1, interval: '1s', within: 'org', lends: 0.5 }));
  RateLimit(() => ({ algo: 'sliding-log', rate: 1, interval: '1s', within: 'org', ceiling: 3 }));
  // @ts-expect-error -- nothing is borrowed of nobody
  RateLimit(() => ({ algo: 'sliding-log', rate: 1, interval: '1s', ceiling: 3 }));
  // @ts-expect-error -- how much of a bucket is left depends on its rate
  RateLimit(() => ({ algo: 'gcra', rate: 1, interval: '1s', within: 'org', ceiling: 3 }));
  // @ts-expect-error -- what adapts is within nothing
  RateLimit(() => ({ algo: 'adaptive', scope: 'instance', within: 'org' }));
  // @ts-expect-error -- and lends nothing
  RateLimit(() => ({ algo: 'adaptive', scope: 'instance', lends: 0.5 }));
  // @ts-expect-error -- warmUp belongs to token-bucket and gcra
  RateLimit(() => ({ algo: 'fixed-window', rate: 1, interval: '1s', warmUp: { for: '5m', from: 0.3 } }));
  // @ts-expect-error -- tokens that come all at once cannot come slower
  RateLimit(() => ({
    algo: 'token-bucket',
    rate: 1,
    interval: '1s',
    refill: 'intervally',
    warmUp: { for: 1, from: 0.3 },
  }));
  // @ts-expect-error -- everybody may take what would be kept for the least important
  RateLimit(() => ({ algo: 'gcra', rate: 1, interval: '1s', reserveFor: { sheddable: 0.2 } }));
  // @ts-expect-error -- there is no such priority
  RateLimit(() => ({ algo: 'gcra', rate: 1, interval: '1s', reserveFor: { critical: 0.2 }, priority: () => 'high' }));
  RateLimit((context) => (context.getType() === 'http' ? ['login', { algo: 'gcra', rate: 1, interval: '1s' }] : null));
  // @ts-expect-error -- burst belongs to the buckets
  RateLimit(() => ({ algo: 'fixed-window', rate: 1, interval: '1s', burst: 5 }));
  // @ts-expect-error -- burst belongs to the buckets
  RateLimit(() => [{ algo: 'fixed-window', rate: 1, interval: '1s', burst: 5 }]);
  // @ts-expect-error -- there may be no such plan, and that is not the same as none on purpose
  RateLimit(() => ({ free: defineLimit({ algo: 'gcra', rate: 1, interval: '1s' }) })['pro' as string]);
});

it('finds misspelt options in what defineLimit and defineLimits take, and gives it back', () => {
  const login: LimitDefinition = { algo: 'sliding-log', rate: 5, interval: '15m' };
  expect(defineLimit(login)).toBe(login);
  const limits = defineLimits({ login });
  expect(limits.login).toBe(login);
  // @ts-expect-error -- nothing is defined by that name
  expect(limits.logout).toBe(undefined);
  // @ts-expect-error -- burts is misspelt
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', burts: 5 });
  // @ts-expect-error -- burts is misspelt
  defineLimits({ login: { algo: 'gcra', rate: 1, interval: '1s', burts: 5 } });
  // @ts-expect-error -- slices belong to sliding-window
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', slices: 5 });
});

it('compiles no wrong mix in a candidate', () => {
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', candidate: { burst: 5 } });
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', candidate: { algo: 'sliding-window', slices: 5 } });
  // @ts-expect-error -- no algorithm has both
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', candidate: { slices: 5, burst: 5 } });
  // @ts-expect-error -- burst belongs to the buckets
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', candidate: { algo: 'fixed-window', burst: 5 } });
  // @ts-expect-error -- burts is misspelt
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', candidate: { burts: 5 } });
  // @ts-expect-error -- a limit and its candidate count the same
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', candidate: { rate: 5, key: 'user' } });
  const defaults = { algo: 'gcra', rate: 1, interval: '1s' } as const;
  // @ts-expect-error -- a candidate has none of its own
  defineLimit({ ...defaults, candidate: { rate: 5, candidate: { rate: 4 } } });
});

it('compiles no wrong mix in a policy as data', () => {
  const policy = {
    limits: {
      api: { rate: 200 },
      exports: { algo: 'token-bucket', rate: 10, interval: '1h', key: 'user', candidate: null, mode: 'off' },
      login: { blockFor: ['1m', '10m'], forgetAfter: '7d', onStoreError: 'deny' },
    },
    overrides: { api: { 'tenant:acme': { rate: 5000, candidate: { rate: 10 } }, 'tenant:*': { mode: 'shadow' } } },
    lists: { allow: [{ ip: '10.0.0.0/8', reason: 'our own' }], deny: [{ pattern: 'trial:*', limit: 'api' }] },
  } satisfies PolicyData;
  RateLimitModule.forRoot({ policy: { source: () => policy } });
  // @ts-expect-error -- there is no such section
  ({ limit: {} }) satisfies PolicyData;
  // @ts-expect-error -- a function is no data
  ({ limits: { api: { cost: () => 2 } } }) satisfies PolicyData;
  // @ts-expect-error -- the name is where the limit stands
  ({ limits: { api: { name: 'api' } } }) satisfies PolicyData;
  // @ts-expect-error -- an override changes no key
  ({ overrides: { api: { 'tenant:acme': { key: 'ip' } } } }) satisfies PolicyData;
  // @ts-expect-error -- an entry names one of these
  ({ lists: { allow: [{ ip: '10.0.0.1', pattern: 'a*' }] } }) satisfies PolicyData;
});

it('compiles no usage of what is in flight', () => {
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', usage: '400d' });
  defineLimit({ algo: 'budget', limit: 1, period: 'day', usage: { keep: '400d', timezone: 'Europe/Berlin' } });
  // @ts-expect-error -- what is held comes back
  defineLimit({ algo: 'concurrency', limit: 1, ttl: '1s', usage: '400d' });
  // @ts-expect-error -- what is in flight comes back
  defineLimit({ algo: 'adaptive', scope: 'instance', usage: '400d' });
  // @ts-expect-error -- nothing says how long
  defineLimit({ algo: 'gcra', rate: 1, interval: '1s', usage: { timezone: 'Europe/Berlin' } });
  expect(defineLimit({ algo: 'gcra', rate: 1, interval: 1, usage: 86_400_000 })).toHaveProperty('usage');
});

it('compiles an anchor of windows that are a day or longer', () => {
  RateLimit({ algo: 'calendar-window', rate: 1, period: 'month', anchor: '2026-01-31' });
  RateLimit({ algo: 'budget', limit: 1, period: 'day', anchor: new Date() });
  RateLimit({
    algo: 'calendar-window',
    rate: 1,
    period: 'year',
    anchor: async (context) => context.getArgs()[0] ?? null,
  });
  // @ts-expect-error -- an hour begins where the hour does
  RateLimit({ algo: 'calendar-window', rate: 1, period: 'hour', anchor: '2026-01-31' });
  // @ts-expect-error -- the windows of others begin by themselves
  RateLimit({ algo: 'fixed-window', rate: 1, interval: '1d', anchor: '2026-01-31' });
  // @ts-expect-error -- whether it is no date
  RateLimit({ algo: 'calendar-window', rate: 1, period: 'month', anchor: () => true });
});

it('compiles what moves on, and credits, of windows of the calendar', () => {
  RateLimit({ algo: 'calendar-window', rate: 1, period: 'hour', rollover: 0.5, credits: true });
  RateLimit({ algo: 'budget', limit: 1, period: 'month', anchor: '2026-01-31', rollover: 1 });
  // @ts-expect-error -- nothing moves without a period
  RateLimit({ algo: 'calendar-window', rate: 1, rollover: 0.5 });
  // @ts-expect-error -- a window that begins with its first request has none before it
  RateLimit({ algo: 'fixed-window', rate: 1, interval: '1d', rollover: 0.5 });
  // @ts-expect-error -- nothing is prepaid where units come back by themselves
  RateLimit({ algo: 'gcra', rate: 1, interval: '1d', credits: true });
  // @ts-expect-error -- without credits it says nothing
  RateLimit({ algo: 'calendar-window', rate: 1, period: 'month', credits: false });
});

// Options often come from a configuration in which some are missing.
it('takes an option that is undefined as one that is missing', async () => {
  const nothing = undefined;
  const common = { name: nothing, key: nothing, cost: nothing, blockFor: nothing, count: nothing, usage: nothing };
  const limits = defineLimits({
    gcra: { algo: 'gcra', rate: 1, interval: '1s', burst: nothing, warmUp: nothing, ...common },
    bucket: { algo: 'token-bucket', rate: 1, interval: '1s', burst: nothing, refill: nothing, ...common },
    leaky: { algo: 'leaky-bucket', rate: 1, interval: '1s', queue: nothing, ...common },
    sliding: { algo: 'sliding-window', rate: 1, interval: '1s', slices: nothing, hold: nothing, ...common },
    log: { algo: 'sliding-log', rate: 1, interval: '1s', ...common },
    fixed: { algo: 'fixed-window', rate: 1, interval: '1s', prefetch: nothing, ...common },
    calendar: { algo: 'calendar-window', rate: 1, period: 'day', timezone: nothing, anchor: nothing, ...common },
    budget: { algo: 'budget', limit: 1, period: 'month', rollover: nothing, onLapse: nothing, ...common },
    slots: { algo: 'concurrency', limit: 1, ttl: '1s', name: nothing, key: nothing },
    adaptive: { algo: 'adaptive', scope: 'instance', key: nothing, min: nothing },
  });
  const module = RateLimitModule.forRoot({ define: limits, redis: nothing, timeout: nothing, defaults: nothing });
  const app = await Test.createTestingModule({ imports: [module] }).compile();
  await app.init();
  const service = app.get(LimiterService);
  for (const name of Object.keys(limits)) {
    if (['slots', 'adaptive', 'leaky'].includes(name)) continue;
    expect([name, (await service.for(name).consume('user:1')).allowed]).toEqual([name, true]);
    expect([name, (await service.for(name).consume('user:1')).allowed]).toEqual([name, false]);
  }
  await app.close();
});
