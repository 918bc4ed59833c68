import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { RateLimitModuleOptions } from '../../../lib/index.js';
import { RatesApp } from '../overrides/overrides-app.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { tell } from './tell.js';

const redis = process.env['TEST_REDIS_URL'] as string;
let apps: RatesApp[];
let errors: string[];

beforeEach(() => {
  apps = [];
  errors = [];
  jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
  jest.spyOn(Logger.prototype, 'error').mockImplementation((text: unknown) => void errors.push(String(text)));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(apps.map((app) => app.close()));
});

async function start(policy: object, options: RateLimitModuleOptions = {}): Promise<RatesApp> {
  const app = await RatesApp.start({ policy: { source: () => policy }, ...options });
  apps.push(app);
  return app;
}

const ofLogin = (options: object) => ({ limits: { login: options } });

/** Refuses a key once, and tells how long it is blocked. */
async function blockOf(app: RatesApp, key: string): Promise<number> {
  const limiter = app.service.for('login');
  for (const cost of [1, 1]) await limiter.consume(key, cost);
  return Math.round((await limiter.peek(key)).retryAfterMs / 60_000);
}

describe.each([
  ['in process', () => ({})],
  ['on Redis', () => ({ redis, prefix: freshPrefix() })],
])('a policy %s', (_, place) => {
  it('makes blocks of several steps from one, and the other way round, while the app runs', async () => {
    const app = await start(ofLogin({ rate: 1, blockFor: '2h' }), place());
    expect(await blockOf(app, 'one')).toBe(120);
    tell(app.nest, ofLogin({ rate: 1, blockFor: ['3h', '4h'], forgetAfter: '1d' }));
    expect(await blockOf(app, 'two')).toBe(180);
    expect(await app.service.for('login').peek('two')).toMatchObject({ allowed: false, offences: 1 });
    // A block that began stays what it was.
    expect(Math.round((await app.service.for('login').peek('one')).retryAfterMs / 60_000)).toBe(120);
    tell(app.nest, ofLogin({ rate: 1, blockFor: '5h' }));
    expect(await blockOf(app, 'three')).toBe(300);
    expect(errors).toEqual([]);
  });

  it('puts a candidate beside a limit, another one, and none, while the app runs', async () => {
    const app = await start({}, place());
    const seen: unknown[] = [];
    app.service.decisions$.subscribe(({ candidate, outcome, quota }) => {
      if (candidate === true) seen.push([outcome, quota]);
    });
    const consume = () => app.service.for('login').consume('a', 3);
    await consume();
    tell(app.nest, ofLogin({ candidate: { rate: 2 } }));
    await consume();
    expect(await app.service.getRate('login')).toMatchObject({
      options: { rate: 10 },
      candidate: { algo: 'gcra', rate: 2, interval: '1h' },
      source: 'policy',
      policy: 'policy limits.login',
    });
    tell(app.nest, ofLogin({ candidate: { algo: 'fixed-window', rate: 5 } }));
    await consume();
    tell(app.nest, ofLogin({ candidate: null }));
    await consume();
    expect(seen).toEqual([
      ['shadow-refused', 2],
      ['allowed', 5],
    ]);
    expect(errors).toEqual([]);
  });
});

describe('a policy', () => {
  it('that says one time makes one block of the steps of code', async () => {
    const login = { algo: 'gcra', rate: 1, interval: '1h', blockFor: ['1m', '2m'], forgetAfter: '1d' } as const;
    const app = await start(ofLogin({ blockFor: '9m' }), { define: { login } });
    tell(app.nest, ofLogin({ forgetAfter: '2d' }));
    expect(errors).toEqual([]);
    tell(app.nest, ofLogin({ blockFor: '9m' }));
    expect(errors).toEqual([]);
  });

  it('may say when the blocks of the defaults are forgotten', async () => {
    const defaults = { blockFor: ['1m', '2m'] } as const;
    const app = await start(
      { limits: { new: { algo: 'gcra', rate: 1, interval: '1h', forgetAfter: '1d' } } },
      { defaults },
    );
    expect(await app.quota('new')).toBe(1);
  });

  it('that takes the candidate of code away makes it the limit', async () => {
    const login = { algo: 'gcra', rate: 10, interval: '1h', candidate: { rate: 5 } } as const;
    const app = await start(ofLogin({ rate: 5, candidate: null }), { define: { login } });
    expect((await app.service.getRate('login')).candidate).toBeUndefined();
    expect(await app.quota()).toBe(5);
    tell(app.nest, {});
    expect((await app.service.getRate('login')).candidate).toMatchObject({ rate: 5 });
  });

  it('with another algorithm leaves the candidate of code out', async () => {
    const login = { algo: 'gcra', rate: 10, interval: '1h', candidate: { burst: 5 } } as const;
    const app = await start(ofLogin({ algo: 'fixed-window', rate: 8, interval: '1h' }), { define: { login } });
    expect((await app.service.getRate('login')).candidate).toBeUndefined();
  });

  it('gives single keys a candidate, which an operator replaces', async () => {
    const app = await start({
      ...ofLogin({ candidate: { rate: 5 } }),
      overrides: { login: { a: { candidate: { rate: 4 } } } },
    });
    const candidate = async (key: string) => (await app.service.getRate('login', { key })).candidate;
    expect([await candidate('a'), await candidate('b')]).toMatchObject([{ rate: 4 }, { rate: 5 }]);
    await app.service.setRate('login', { candidate: { rate: 3 } }, { key: 'a' });
    expect(await candidate('a')).toMatchObject({ rate: 3 });
    tell(app.nest, { overrides: { login: { a: { candidate: null } } } });
    expect(await candidate('a')).toMatchObject({ rate: 3 });
    await app.service.clearRate('login', { key: 'a' });
    expect([await candidate('a'), await candidate('b')]).toEqual([undefined, undefined]);
  });

  it.each([
    [
      'a candidate that does not fit a limit of code',
      ofLogin({ candidate: { queue: 5 } }),
      "policy limits.login.candidate: option 'queue' is not an option of 'gcra'",
    ],
    [
      'an override with such a candidate',
      { overrides: { login: { a: { candidate: { queue: 5 } } } } },
      "policy overrides.login.a.candidate: option 'queue' is not an option of 'gcra'",
    ],
    [
      'something to forget where code has no blocks',
      ofLogin({ forgetAfter: '1d' }),
      "policy limits.login.forgetAfter: expected nothing, unless 'blockFor' is a list of durations, received '1d'",
    ],
  ])('with %s is refused as a whole', async (_, policy, message) => {
    const app = await start(ofLogin({ rate: 5 }));
    tell(app.nest, policy);
    expect(errors).toEqual([expect.stringContaining(message)]);
    expect(await app.quota()).toBe(5);
  });
});
