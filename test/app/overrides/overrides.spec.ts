import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import {
  type LimitDefinition,
  MemoryStore,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
  type RatePatch,
  type SetRateOptions,
} from '../../../lib/index.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { login, RatesApp, until } from './overrides-app.js';
import { moduleLimits } from '../../support/nest/app-parts.js';

describe('rates that change while the app runs', () => {
  let app: RatesApp;
  let store: MemoryStore | undefined;

  beforeEach(() => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await app?.close();
    await store?.close();
  });

  const kinds: Record<string, () => RateLimitModuleOptions> = {
    'in process': () => ({}),
    'with a store of the app': () => ({ store: (store = new MemoryStore()) }),
    'on Redis': () => ({ redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix() }),
  };

  describe.each(Object.entries(kinds))('%s', (_, options) => {
    beforeEach(async () => {
      app = await RatesApp.start(options());
    });

    it('hold for a defined limit at once, and end when they are cleared', async () => {
      const { service } = app;
      const limiter = service.for('login');
      expect(await limiter.consume('user:1', 4)).toMatchObject({ quota: 10, remaining: 6 });
      await service.setRate('login', { rate: 20 });
      expect(await limiter.peek('user:1')).toMatchObject({ quota: 20, remaining: 16 });
      await service.setRate('login', { rate: 5 });
      expect(await limiter.peek('user:1')).toMatchObject({ quota: 5 });
      expect(await service.clearRate('login')).toBe(true);
      expect(await service.clearRate('login')).toBe(false);
      expect(await limiter.peek('user:2')).toMatchObject({ quota: 10, remaining: 10 });
    });

    it('hold for a limit of the module that has a name', async () => {
      const { service } = app;
      await service.setRate('hourly', { rate: 300, slices: 4 });
      expect(await service.getRate('hourly')).toEqual({
        name: 'hourly',
        options: { algo: 'sliding-window', rate: 300, interval: '1h', slices: 4 },
        source: 'limit',
        override: { patch: { rate: 300, slices: 4 }, version: 1, inherit: 'keep', expiresAt: undefined },
      });
      const [{ limit, configured }] = moduleLimits(app.nest);
      expect(limit).toMatchObject({ quota: 300, namespace: '@module', id: configured.id });
    });

    it('hold for limits of forFeature', async () => {
      await app.close();
      const feature: LimitDefinition = { algo: 'fixed-window', rate: 1, interval: '1d' };
      app = await RatesApp.start(options(), { imports: [RateLimitModule.forFeature({ feature })] });
      await app.service.setRate('feature', { rate: 2 });
      expect(await app.quota('feature')).toBe(2);
    });

    it('stand over the configuration, not over each other, and count their versions', async () => {
      const { service } = app;
      expect(await service.getRate('login')).toEqual({
        name: 'login',
        options: login,
        source: 'configured',
        override: undefined,
      });
      await service.setRate('login', { burst: 40 });
      await service.setRate('login', { rate: 20 });
      expect(await service.getRate('login')).toMatchObject({
        options: { algo: 'gcra', rate: 20, interval: '1h' },
        override: { patch: { rate: 20 }, version: 2 },
      });
      expect((await service.getRate('login')).options).not.toHaveProperty('burst');
      await service.clearRate('login');
      expect((await service.getRate('login')).override).toBeUndefined();
      await service.setRate('login', { rate: 21 });
      expect((await service.getRate('login')).override?.version).toBe(4);
    });

    it('are listed with and without a change', async () => {
      await app.service.setRate('hourly', { interval: '2h' });
      expect(await app.service.listRates()).toMatchObject([
        { name: 'hourly', options: { rate: 100, interval: '2h' }, override: { version: 1 } },
        { name: 'login', options: login, override: undefined },
      ]);
    });

    it('give away nothing that can be changed from outside', async () => {
      await app.service.setRate('login', { rate: 20 });
      const { override, options } = await app.service.getRate('login');
      Object.assign(override!.patch, { rate: 1 });
      Object.assign(options, { rate: 1 });
      expect(await app.service.getRate('login')).toMatchObject({
        options: { rate: 20 },
        override: { patch: { rate: 20 } },
      });
    });

    it('are set by one of many calls of trySetRate', async () => {
      const { service } = app;
      const tries = Array.from({ length: 50 }, (_, index) => service.trySetRate('login', { rate: 100 + index }));
      const done = await Promise.all(tries);
      expect(done.filter(Boolean)).toHaveLength(1);
      expect(await app.quota()).toBe(100 + done.indexOf(true));
      expect((await service.getRate('login')).override?.version).toBe(1);
      await service.clearRate('login');
      expect(await service.trySetRate('login', { rate: 20 })).toBe(true);
      await service.setRate('login', { rate: 30 });
      expect(await service.trySetRate('login', { rate: 40 })).toBe(false);
      expect(await app.quota()).toBe(30);
    });

    it('start all counters anew with a reset, and the old ones do not come back', async () => {
      const { service } = app;
      const limiter = service.for('login');
      await limiter.consume('user:1', 10);
      await service.setRate('login', { rate: 20 }, { inherit: 'reset' });
      expect(await limiter.consume('user:1', 3)).toMatchObject({ allowed: true, remaining: 17 });
      await service.clearRate('login');
      expect(await limiter.peek('user:1')).toMatchObject({ quota: 10, remaining: 7 });
      await service.setRate('login', { rate: 20 }, { inherit: 'reset' });
      expect(await limiter.peek('user:1')).toMatchObject({ remaining: 20 });
      expect((await service.getRate('login')).override).toMatchObject({ version: 3, inherit: 'reset' });
    });

    it.each([
      ['proportional', 12],
      ['additive', 16],
    ] as const)('carry over what is left of a smaller quota, %s', async (inherit, more) => {
      const { service } = app;
      const limiter = service.for('login');
      await limiter.consume('user:1', 4);
      await limiter.penalize('user:owing', 13);
      await service.setRate('login', { rate: 20 }, { inherit });
      expect((await service.getRate('login')).override).toMatchObject({ inherit });
      expect(await app.remaining('user:1')).toBe(more);
      expect(await app.remaining('user:fresh')).toBe(20);
      expect(await app.remaining('user:owing')).toBe(0);
      // Asked only now, and once: what is left does not change with every look.
      await limiter.consume('user:1', 1);
      expect(await app.remaining('user:1')).toBe(more - 1);
      // Under a smaller quota nobody owes less: an instance that still knows the larger one would find it as room.
      await service.setRate('login', { rate: 5 }, { inherit });
      expect(await app.remaining('user:1')).toBe(0);
      await limiter.reset('user:2');
      await service.setRate('login', { rate: 10 }, { inherit });
      await limiter.consume('user:2', 4);
      await service.setRate('login', { rate: 5 }, { inherit });
      expect(await app.remaining('user:2')).toBe(1);
      await service.setRate('login', { rate: 2 }, { inherit });
      expect(await app.remaining('user:2')).toBe(0);
    });

    it('end by themselves', async () => {
      const { service } = app;
      const before = Date.now();
      await service.setRate('login', { rate: 20 }, { expiresIn: '1h' });
      const expiresAt = (await service.getRate('login')).override!.expiresAt!;
      expect(expiresAt).toBeGreaterThanOrEqual(before + 3_600_000 - 10);
      expect(expiresAt).toBeLessThanOrEqual(Date.now() + 3_600_000 + 10);
      expect(await app.quota()).toBe(20);
      expect(await service.trySetRate('login', { rate: 30 })).toBe(false);
      const since = Date.now();
      await service.setRate('login', { rate: 20 }, { expiresIn: 50 });
      await until(() => app.quota(), 10);
      expect(Date.now()).toBeGreaterThanOrEqual(since + 40);
      expect((await service.getRate('login')).override).toBeUndefined();
      expect(await service.clearRate('login')).toBe(false);
      expect(await service.trySetRate('login', { rate: 30 })).toBe(true);
      expect((await service.getRate('login')).override).toMatchObject({ version: 3, expiresAt: undefined });
    });

    describe('when they are wrong', () => {
      const wrong: [patch: unknown, message: string][] = [
        [{ rate: 0 }, "LimiterService.setRate of 'login'.rate: expected a whole number >= 1, received 0"],
        [{ rate: NaN }, 'rate: expected a whole number >= 1, received NaN'],
        [{ rate: 1.5 }, 'rate: expected a whole number >= 1, received 1.5'],
        [{ rate: '5' }, "rate: expected a whole number >= 1, received '5'"],
        [{ rate: null }, 'rate: expected a whole number >= 1, received null'],
        [{ burst: -1 }, 'burst: expected a whole number >= 1, received -1'],
        [
          { interval: 'soon' },
          "interval: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year, received 'soon'",
        ],
        [
          { rate: 2 ** 53 - 1, interval: 123.457 },
          "a 'rate' of 9007199254740991 with an 'interval' of 123.457 ms and a 'burst' (or 'queue') of 9007199254740991 cannot be counted exactly in whole numbers below 2^53. Use a rounder or smaller 'rate', a shorter 'interval' or a smaller 'burst'",
        ],
        [{ queue: 1 }, "option 'queue' is not an option of 'gcra': it belongs to leaky-bucket"],
        [
          { algo: 'gcra', rate: 1 },
          'algo: cannot be changed while the app runs, expected one of rate, interval, burst',
        ],
        [{ name: 'other' }, 'name: cannot be changed while the app runs, expected one of rate, interval, burst'],
        [
          { rate: 5, key: 'global' },
          'key: cannot be changed while the app runs, expected one of rate, interval, burst',
        ],
        [{ cost: () => 1 }, 'cost: cannot be changed while the app runs, expected one of rate, interval, burst'],
        [{ mode: 'shadow' }, 'mode: cannot be changed while the app runs, expected one of rate, interval, burst'],
        [{ raet: 5 }, "unknown option 'raet'. Did you mean 'rate'?"],
        [JSON.parse('{"__proto__":{"rate":5}}'), "unknown option '__proto__', expected one of rate, interval"],
        [{}, 'expected an object of at least one of rate, interval, burst, warmUp, lends, candidate, received {}'],
        [{ rate: undefined }, 'expected an object of at least one of'],
        [null, 'expected an object of at least one of rate, interval, burst, warmUp, lends, candidate, received null'],
        [
          undefined,
          'expected an object of at least one of rate, interval, burst, warmUp, lends, candidate, received undefined',
        ],
        ['20', "expected an object of at least one of rate, interval, burst, warmUp, lends, candidate, received '20'"],
        [
          [20],
          'expected an object of at least one of rate, interval, burst, warmUp, lends, candidate, received [ 20 ]',
        ],
      ];
      it.each(wrong)('refuse the patch %p and change nothing', async (patch, message) => {
        const { service } = app;
        await service.setRate('login', { rate: 20 });
        const before = await service.getRate('login');
        await expect(service.setRate('login', patch as RatePatch)).rejects.toThrow(message);
        await expect(service.setRate('login', patch as RatePatch)).rejects.toThrow(RateLimitConfigError);
        await expect(service.trySetRate('login', patch as RatePatch)).rejects.toThrow(RateLimitConfigError);
        expect(await service.getRate('login')).toEqual(before);
        expect(await app.quota()).toBe(20);
      });

      it.each<[unknown, string | RegExp]>([
        [{ expiresIn: 0 }, /expiresIn: expected .+, received 0/],
        [{ expiresIn: '2y' }, /expiresIn: expected .+, received '2y'/],
        [{ expiresIn: 'later' }, /expiresIn: expected .+, received 'later'/],
        [{ inherit: 'drop' }, "inherit: expected one of keep, proportional, additive, reset, received 'drop'"],
        [{ expires: '1m' }, "unknown option 'expires'. Did you mean 'expiresIn'?"],
        [null, 'expected an object of options, received null'],
      ])('refuse the options %p and change nothing', async (given, message) => {
        const call = app.service.setRate('login', { rate: 20 }, given as SetRateOptions);
        await expect(call).rejects.toThrow(RateLimitConfigError);
        await expect(call).rejects.toThrow(message);
        expect(await app.quota()).toBe(10);
      });

      it.each(['nope', 'gcra:7/1s', '', '__proto__', undefined])('refuse the name %p', async (name) => {
        const { service } = app;
        const calls = [
          () => service.setRate(name as string, { rate: 1 }),
          () => service.trySetRate(name as string, { rate: 1 }),
          () => service.getRate(name as string),
          () => service.clearRate(name as string),
        ];
        for (const call of calls) {
          await expect(call()).rejects.toThrow(RateLimitConfigError);
          await expect(call()).rejects.toThrow(
            `unknown limit ${inspect(name)}, expected a limit of 'define', 'forFeature' or 'limits' with a 'name': `,
          );
          await expect(call()).rejects.toThrow("'hourly', 'login'");
        }
      });

      it('name the limit that was probably meant', async () => {
        const call = app.service.setRate('logn', { rate: 1 });
        await expect(call).rejects.toThrow("unknown limit 'logn'. Did you mean 'login'?");
      });
    });
  });

  it('end after months, which no timer can wait for', async () => {
    app = await RatesApp.start();
    jest.useFakeTimers();
    try {
      await app.service.setRate('login', { rate: 20 }, { expiresIn: '60d' });
      await jest.advanceTimersByTimeAsync(59 * 86_400_000);
      expect((await app.service.getRate('login')).options).toMatchObject({ rate: 20 });
      await jest.advanceTimersByTimeAsync(86_400_000);
      expect(await app.quota()).toBe(10);
    } finally {
      jest.useRealTimers();
    }
  });

  it('have no limit to change in an app without named ones', async () => {
    app = await RatesApp.start({ limits: [], define: {} });
    expect(await app.service.listRates()).toEqual([]);
    await expect(app.service.setRate('login', { rate: 1 })).rejects.toThrow('there is none');
  });

  it('reach limits that a module brings later', async () => {
    const options = { redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix(), limits: [] } as const;
    const other = await RatesApp.start({ ...options, define: { early: login, late: login } });
    try {
      app = await RatesApp.start({ ...options, define: {} });
      // The later one is waited for, so the first is there, too.
      await other.service.setRate('late', { rate: 30 });
      await other.service.setRate('early', { rate: 20 });
      const bring = (limits: Record<string, LimitDefinition>) =>
        app.nest.get(LazyModuleLoader).load(() => RateLimitModule.forFeature(limits));
      await bring({ early: login });
      await until(() => app.quota('early'), 20);
      await bring({ late: login });
      expect(await app.quota('late')).toBe(30);
      await other.service.clearRate('late');
      await until(() => app.quota('late'), 10);
    } finally {
      await other.close();
    }
  });

  it('are typed by the options of the algorithms', () => {
    const patches: RatePatch[] = [
      { rate: 5 },
      { interval: '1s', burst: 3 },
      { queue: 2 },
      { slices: 4 },
      { retain: '7d' },
    ];
    const bucket: RatePatch<'leaky-bucket'> = { queue: 3 };
    // @ts-expect-error It belongs to another algorithm.
    const foreign: RatePatch<'leaky-bucket'> = { burst: 3 };
    // @ts-expect-error The algorithm stays.
    const algo: RatePatch = { algo: 'gcra', rate: 5 };
    // @ts-expect-error It is no algorithm's.
    const name: RatePatch = { name: 'other' };
    // @ts-expect-error A rate is a number.
    const text: RatePatch = { rate: '5' };
    // @ts-expect-error It is no state.
    const state: SetRateOptions = { inherit: 'drop' };
    expect([patches, bucket, foreign, algo, name, text, state]).toHaveLength(7);
  });
});
