import { describe, expect, it } from '@jest/globals';
import { RateLimitConfigError, type RateLimitModuleOptions, type SetRateOptions } from '../../../lib/index.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { login, type RatesApp, startForEach, until } from './overrides-app.js';
import { limitInForce } from '../../support/nest/app-parts.js';
import { variants } from '../../support/tier.js';

const IDS = ['user:1', 'tenant:us', 'tenant:eu:1', 'tenant:eu:acme', 'tenant:', 'tenant'];

const kinds: Record<string, () => RateLimitModuleOptions> = {
  'on Redis': () => ({ redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix() }),
  'in process': () => ({}),
};

describe.each(variants(Object.entries(kinds)))('rates of single keys, %s', (_, options) => {
  let app: RatesApp;
  const quota = (key: string) => app.quota('login', key);
  const quotas = (keys: readonly string[]) => Promise.all(keys.map(quota));
  const limitOf = (key: string) => limitInForce(app.nest, 'login', key);

  startForEach(options, (started) => (app = started));

  it('hold for their key alone, and end when they are cleared', async () => {
    const { service } = app;
    await service.for('login').consume('tenant:acme', 4);
    await service.setRate('login', { rate: 50 }, { key: 'tenant:acme' });
    expect(await service.for('login').peek('tenant:acme')).toMatchObject({ quota: 50, remaining: 46 });
    expect(await quota('tenant:other')).toBe(10);
    expect(await quota('tenant:acme2')).toBe(10);
    expect(await service.clearRate('login')).toBe(false);
    expect(await service.clearRate('login', { key: 'tenant:acme' })).toBe(true);
    expect(await service.clearRate('login', { key: 'tenant:acme' })).toBe(false);
    expect(await service.for('login').peek('tenant:acme')).toMatchObject({ quota: 10, remaining: 6 });
    expect(limitOf('tenant:acme')).toBe(limitOf('tenant:other'));
  });

  it('yield to more specific ones, whatever the order in which they were set', async () => {
    const { service } = app;
    const set = (rate: number, key?: string) => service.setRate('login', { rate }, key === undefined ? {} : { key });
    await set(60, 'tenant:eu:*');
    await set(70, 'tenant:eu:acme');
    await set(40);
    await set(50, 'tenant:*');
    expect(await quotas(IDS)).toEqual([40, 50, 60, 70, 50, 40]);
    await service.clearRate('login', { key: 'tenant:eu:*' });
    expect(await quotas(IDS)).toEqual([40, 50, 50, 70, 50, 40]);
    await service.clearRate('login', { key: 'tenant:eu:acme' });
    expect(await quotas(IDS)).toEqual([40, 50, 50, 50, 50, 40]);
    await service.clearRate('login');
    expect(await quotas(IDS)).toEqual([10, 50, 50, 50, 50, 10]);
    await service.clearRate('login', { key: 'tenant:*' });
    expect(await quotas(IDS)).toEqual([10, 10, 10, 10, 10, 10]);
  });

  it('are told with the place from where they are', async () => {
    const { service } = app;
    expect(await service.getRate('login', { key: 'tenant:eu' })).toEqual({
      name: 'login',
      options: login,
      source: 'configured',
      override: undefined,
    });
    await service.setRate('login', { rate: 20 }, { by: 'ops', reason: 'launch' });
    await service.setRate('login', { rate: 30, burst: 5 }, { key: 'tenant:*' });
    await service.setRate(
      'login',
      { rate: 40 },
      { key: 'tenant:acme', by: 'eva', reason: 'migration', expiresIn: '2d' },
    );
    expect(await service.getRate('login', { key: 'user:1' })).toEqual({
      name: 'login',
      options: { ...login, rate: 20 },
      source: 'limit',
      override: { patch: { rate: 20 }, version: 1, inherit: 'keep', expiresAt: undefined, by: 'ops', reason: 'launch' },
    });
    expect(await service.getRate('login', { key: 'tenant:eu' })).toEqual({
      name: 'login',
      options: { ...login, rate: 30, burst: 5 },
      source: 'pattern',
      override: { key: 'tenant:*', patch: { rate: 30, burst: 5 }, version: 2, inherit: 'keep', expiresAt: undefined },
    });
    const { source, override } = await service.getRate('login', { key: 'tenant:acme' });
    expect(source).toBe('key');
    expect(override).toEqual({
      key: 'tenant:acme',
      patch: { rate: 40 },
      version: 3,
      inherit: 'keep',
      expiresAt: expect.any(Number),
      by: 'eva',
      reason: 'migration',
    });
    expect(override!.expiresAt! - Date.now()).toBeGreaterThan(2 * 86_400_000 - 60_000);
    expect(await service.listRates()).toMatchObject([{ name: 'hourly' }, { name: 'login', options: { rate: 20 } }]);
  });

  it('are listed page by page, in the order of their keys', async () => {
    const { service } = app;
    const keys = ['b*', 'c', 'a', 'tenant:*', 'b'];
    for (const [index, key] of keys.entries()) await service.setRate('login', { rate: 20 + index }, { key });
    const first = await service.listRates('login', { count: 2 });
    expect(first).toMatchObject({ overrides: [{ key: 'a', rate: { patch: { rate: 22 } } }, { key: 'b' }], next: 'b' });
    await service.clearRate('login', { key: 'b' });
    const second = await service.listRates('login', { count: 2, cursor: first.next! });
    expect(second).toMatchObject({ overrides: [{ key: 'b*' }, { key: 'c' }], next: 'c' });
    const third = await service.listRates('login', { count: 2, cursor: second.next! });
    expect(third).toEqual({ overrides: [expect.objectContaining({ key: 'tenant:*' })], next: undefined });
    expect(await service.listRates('hourly')).toEqual({ overrides: [], next: undefined });
    for (const wrong of [{ count: 0 }, { count: 1001 }, { cursor: 5 }, { page: 1 }, null]) {
      await expect(service.listRates('login', wrong as never)).rejects.toThrow(RateLimitConfigError);
    }
  });

  it('share one compiled limit if they are equal', async () => {
    const { service } = app;
    for (let tenant = 0; tenant < 20; tenant++) {
      await service.setRate('login', { rate: 20 + (tenant % 2) }, { key: `tenant:${tenant}` });
    }
    const limits = Array.from({ length: 20 }, (_each, tenant) => limitOf(`tenant:${tenant}`));
    expect(new Set(limits).size).toBe(2);
    await service.setRate('login', { rate: 20 });
    expect(limitOf('tenant:0')).toBe(limits[0]);
    expect(limitOf('user:1')).toBe(limits[0]);
  });

  it('end by themselves', async () => {
    const { service } = app;
    const [pattern, key] = [{ key: 'tenant:*' }, { key: 'tenant:acme' }];
    await service.setRate('login', { rate: 30 }, { ...pattern, expiresIn: '1h' });
    await service.setRate('login', { rate: 20 }, { ...key, expiresIn: '1h' });
    expect([await quota('tenant:acme'), await quota('tenant:b')]).toEqual([20, 30]);
    expect(await service.trySetRate('login', { rate: 40 }, key)).toBe(false);
    await service.setRate('login', { rate: 20 }, { ...key, expiresIn: 30 });
    await until(() => quota('tenant:acme'), 30);
    await service.setRate('login', { rate: 30 }, { ...pattern, expiresIn: 30 });
    await until(() => quota('tenant:acme'), 10);
    expect(await service.clearRate('login', { key: 'tenant:*' })).toBe(false);
    expect(await service.trySetRate('login', { rate: 40 }, { key: 'tenant:acme' })).toBe(true);
    expect(await service.listRates('login')).toMatchObject({ overrides: [{ key: 'tenant:acme' }] });
  });

  it('start the counters of their key anew with a reset, which do not come back', async () => {
    const { service } = app;
    const limiter = service.for('login');
    for (const key of ['tenant:acme', 'tenant:b', 'user:1']) await limiter.consume(key, 10);
    const remaining = async () => Promise.all(['tenant:acme', 'tenant:b', 'user:1'].map((key) => app.remaining(key)));
    await service.setRate('login', { rate: 20 }, { key: 'tenant:acme', inherit: 'reset' });
    expect(await remaining()).toEqual([20, 0, 0]);
    await limiter.consume('tenant:acme', 3);
    await service.clearRate('login', { key: 'tenant:acme' });
    expect(await remaining()).toEqual([7, 0, 0]);
    await service.setRate('login', { rate: 20 }, { key: 'tenant:*', inherit: 'reset' });
    expect(await remaining()).toEqual([20, 20, 0]);
    await service.setRate('login', { rate: 30 }, { key: 'tenant:acme' });
    expect(await remaining()).toEqual([30, 20, 0]);
    await service.setRate('login', { rate: 40 }, { inherit: 'reset' });
    expect(await remaining()).toEqual([30, 20, 40]);
    for (const key of ['tenant:acme', 'tenant:*']) await service.clearRate('login', { key });
    await service.clearRate('login');
    expect(await remaining()).toEqual([10, 10, 10]);
  });

  it.each([
    ['keep', 16],
    ['proportional', 12],
    ['additive', 16],
  ] as const)('carry over what is left, %s', async (inherit, more) => {
    const { service } = app;
    await service.for('login').consume('tenant:acme', 4);
    await service.setRate('login', { rate: 20 }, { key: 'tenant:*', inherit });
    expect(await app.remaining('tenant:acme')).toBe(more);
    await service.for('login').consume('tenant:acme', 1);
    expect(await app.remaining('tenant:acme')).toBe(more - 1);
  });

  it('hold for checks of several limits, refunds and waiting calls', async () => {
    const { service } = app;
    const limiter = service.for('login');
    await limiter.consume('tenant:acme', 10);
    const waiting = limiter.acquire('tenant:acme');
    await service.setRate('login', { rate: 1000, interval: '1s' }, { key: 'tenant:acme' });
    expect(await waiting).toMatchObject({ allowed: true });
    const check = await service.check([
      { limit: 'login', key: 'tenant:acme' },
      { limit: 'login', key: 'user:1' },
    ]);
    expect(check.decisions.map((each) => each.quota)).toEqual([1000, 10]);
    await service.setRate('login', { rate: 1000, interval: '1h' }, { key: 'tenant:acme', inherit: 'reset' });
    await limiter.consume('tenant:acme', 100);
    await limiter.refund('tenant:acme', 40);
    expect(await app.remaining('tenant:acme')).toBe(940);
  });

  it.each([
    '~',
    'a\nb',
    'naïve ü 日本',
    '*'.padStart(512, 'x'),
    'x'.repeat(512),
    'constructor',
    '__proto__',
    'version',
  ])('hold for the key %j', async (key) => {
    await app.service.setRate('login', { rate: 20 }, { key });
    expect(await quota(key.replace(/\*$/, 'y'))).toBe(20);
    expect(await quota('user:1')).toBe(10);
  });

  it.each<[unknown, string | RegExp]>([
    [{ key: '' }, /key: expected the key of one identity such as 'tenant:acme'.+, received ''/],
    [{ key: '*' }, /key: expected .+, received '\*'/],
    [{ key: 'a*b' }, /key: expected .+, received 'a\*b'/],
    [{ key: '**' }, /key: expected .+, received '\*\*'/],
    [{ key: 7 }, /key: expected .+, received 7/],
    [{ key: null }, /key: expected .+, received null/],
    [{ key: '\ud800' }, /key: expected .+, received '\\ud800'/],
    [{ key: 'x'.repeat(513) }, 'of at most 512 characters'],
    [{ key: 'a', expiresIn: '5 parsecs' }, /expiresIn: expected .+, received '5 parsecs'/],
    [{ key: 'a', by: '' }, /by: expected a string of 1 to 200 characters.+, received ''/],
    [
      { key: 'a', by: 'x'.repeat(201) },
      "expected a string of 1 to 200 characters on one line, without control characters and marks of direction, received 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'... 121 more characters",
    ],
    [{ key: 'a', reason: 5 }, /reason: expected a string.+, received 5/],
    [{ key: 'a', keys: [] }, "unknown option 'keys'. Did you mean 'key'?"],
  ])('refuse the options %p and change nothing', async (given, message) => {
    const call = app.service.setRate('login', { rate: 20 }, given as SetRateOptions);
    await expect(call).rejects.toThrow(RateLimitConfigError);
    await expect(call).rejects.toThrow(message);
    expect(await app.service.listRates('login')).toEqual({ overrides: [], next: undefined });
  });

  it('refuse what the algorithm cannot count, and change nothing', async () => {
    const call = app.service.setRate('login', { rate: 2 ** 53 - 1, interval: 123.457 }, { key: 'tenant:acme' });
    await expect(call).rejects.toThrow(
      "LimiterService.setRate of 'login': a 'rate' of 9007199254740991 with an 'interval' of 123.457 ms and a 'burst' (or 'queue') of 9007199254740991 cannot be counted exactly in whole numbers below 2^53. Use a rounder or smaller 'rate', a shorter 'interval' or a smaller 'burst'",
    );
    expect(await quota('tenant:acme')).toBe(10);
    await expect(app.service.getRate('login', { key: '' })).rejects.toThrow(
      "key: expected a string that is not empty, received ''",
    );
    await expect(app.service.clearRate('login', { expiresIn: 5 } as never)).rejects.toThrow(
      "unknown option 'expiresIn', expected one of key, by, reason",
    );
  });
});
