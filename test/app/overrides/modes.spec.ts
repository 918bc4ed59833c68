import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, type ExecutionContext, Get } from '@nestjs/common';
import {
  type LimitMode,
  RateLimit,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { TriedApp } from '../../docs/tried-app.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { type RatesApp, startForEach, until } from './overrides-app.js';
import { storeOf } from '../../support/nest/app-parts.js';
import { variants } from '../../support/tier.js';

const define = {
  login: { algo: 'gcra', rate: 10, interval: '1h' },
  window: { algo: 'fixed-window', rate: 1, interval: '1h' },
  queue: { algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 5 },
  jobs: { algo: 'concurrency', limit: 1, ttl: '1m' },
  tried: { algo: 'gcra', rate: 1, interval: '1h', mode: 'shadow' },
} as const;

const kinds: Record<string, () => RateLimitModuleOptions> = {
  'on Redis': () => ({ define, redis: process.env['TEST_REDIS_URL'], prefix: freshPrefix() }),
  'in process': () => ({ define }),
};

describe.each(variants(Object.entries(kinds)))('modes that change while the app runs, %s', (_, options) => {
  let app: RatesApp;
  const KEY = 'tenant:acme';

  startForEach(options, (started) => (app = started));

  /** Watches calls that may have to wait: the store has answered so many of them once the function resolves. */
  const watchAnswers = () => {
    const store = storeOf(app.nest);
    const decide = store.decide.bind(store);
    const answers: Promise<void>[] = [];
    jest.spyOn(store, 'decide').mockImplementation((check, answer) => {
      if (check.reserving !== true) return decide(check, answer);
      const isAnswered = new Promise<void>((resolve) =>
        decide(check, {
          decided(decisions) {
            answer.decided(decisions);
            resolve();
          },
          failed(error) {
            answer.failed(error);
            resolve();
          },
        }),
      );
      answers.push(isAnswered);
    });
    const answered = async (count: number) => {
      await until(async () => answers.length, count);
      await Promise.all(answers);
      await turn();
    };
    return { answers, answered };
  };

  it('switch a limit off and on, with the units that were counted before', async () => {
    const { service } = app;
    const limiter = service.for('login');
    await limiter.consume(KEY, 9);
    await service.setMode('login', 'off');
    for (let count = 0; count < 20; count++) {
      expect(await limiter.consume(KEY)).toEqual({
        allowed: true,
        limit: 'login',
        quota: 10,
        remaining: 10,
        retryAfterMs: 0,
        resetAfterMs: 0,
        delayMs: 0,
        source: 'memory',
      });
    }
    await service.setMode('login', 'enforce');
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: true, remaining: 0 });
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false });
  });

  it('let a limit count and refuse nothing, and enforce one that was to be tried', async () => {
    const { service } = app;
    await service.setMode('login', 'shadow');
    const limiter = service.for('login');
    expect(await limiter.consume(KEY, 10)).toMatchObject({ allowed: true, remaining: 0 });
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0 });
    expect(await service.clearMode('login')).toBe(true);
    expect(await service.clearMode('login')).toBe(false);
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false });
    await service.setMode('tried', 'enforce');
    await service.for('tried').consume(KEY);
    expect(await service.for('tried').consume(KEY)).toMatchObject({ allowed: false });
    await service.clearMode('tried');
    expect(await service.for('tried').consume(KEY)).toMatchObject({ allowed: true });
  });

  it('hold for keys, whatever their rates are', async () => {
    const { service } = app;
    const modes = async () =>
      Promise.all(['user:1', 'tenant:b', KEY].map(async (key) => (await service.getMode('login', { key })).mode));
    await service.setMode('login', 'off', { key: 'tenant:*' });
    await service.setMode('login', 'enforce', { key: KEY, by: 'eva', reason: 'abuse' });
    await service.setRate('login', { rate: 20 }, { key: 'tenant:*' });
    expect(await modes()).toEqual(['enforce', 'off', 'enforce']);
    await service.setMode('login', 'shadow');
    expect(await modes()).toEqual(['shadow', 'off', 'enforce']);
    expect(await service.for('login').consume(KEY, 21)).toMatchObject({ allowed: false, quota: 20 });
    expect(await service.for('login').consume('tenant:b', 21)).toMatchObject({ allowed: true, source: 'memory' });
    expect(await service.for('login').consume('user:1', 21)).toMatchObject({ allowed: true, quota: 10 });
    expect(await service.getMode('login', { key: KEY })).toEqual({
      name: 'login',
      mode: 'enforce',
      source: 'key',
      override: { key: KEY, mode: 'enforce', version: 2, expiresAt: undefined, by: 'eva', reason: 'abuse' },
    });
    expect(await service.getMode('login', { key: 'tenant:b' })).toMatchObject({ source: 'pattern' });
    expect(await service.getMode('login')).toMatchObject({ source: 'limit', override: { mode: 'shadow' } });
    expect(await service.getMode('tried')).toEqual({
      name: 'tried',
      mode: 'shadow',
      source: 'configured',
      override: undefined,
    });
    expect(await service.listRates('login')).toMatchObject({
      overrides: [
        { key: 'tenant:*', rate: { patch: { rate: 20 } }, mode: { mode: 'off' } },
        { key: KEY, rate: undefined, mode: { mode: 'enforce' } },
      ],
    });
    await service.clearMode('login', { key: KEY });
    expect(await modes()).toEqual(['shadow', 'off', 'off']);
    expect((await service.getRate('login', { key: KEY })).options).toMatchObject({ rate: 20 });
  });

  it('end by themselves', async () => {
    await app.service.setMode('login', 'off', { expiresIn: '1h' });
    expect((await app.service.getMode('login')).mode).toBe('off');
    await app.service.setMode('login', 'off', { expiresIn: 30 });
    await until(async () => (await app.service.for('login').consume(KEY, 11)).allowed, false);
    expect((await app.service.getMode('login')).override).toBeUndefined();
  });

  it('leave a limit that is off out of checks of several limits', async () => {
    const { service } = app;
    await service.setMode('window', 'off');
    const checks = [
      { limit: 'window', key: KEY },
      { limit: 'login', key: KEY },
      { limit: 'jobs', key: KEY },
    ];
    for (let count = 1; count <= 3; count++) {
      const { allowed, decisions } = await service.check(checks.slice(0, 2));
      expect(allowed).toBe(true);
      expect(decisions).toMatchObject([
        { limit: 'window', remaining: 1, source: 'memory' },
        { limit: 'login', remaining: 10 - count },
      ]);
    }
    await service.setMode('login', 'off');
    await service.setMode('jobs', 'off');
    const result = await service.check(checks);
    expect(result).toMatchObject({ allowed: true, delayMs: 0, tightest: { remaining: 1 } });
    await result.decisions[2]!.lease!.release();
    await service.setMode('window', 'enforce');
    expect(await service.check(checks)).toMatchObject({ allowed: true, tightest: { limit: 'window', remaining: 0 } });
    expect(await service.check(checks)).toMatchObject({ allowed: false, tightest: { limit: 'window' } });
  });

  it('of a limit that is off hold, reserve and delay nothing', async () => {
    const { service } = app;
    for (const name of Object.keys(define)) await service.setMode(name, 'off');
    const jobs = service.for('jobs');
    expect(await jobs.hold(KEY, () => jobs.hold(KEY, () => 'done'))).toBe('done');
    const { lease } = await jobs.consume(KEY);
    expect(await lease!.renew()).toBe(true);
    await lease!.release();
    for (let count = 0; count < 10; count++) {
      expect(await service.for('queue').consume(KEY)).toMatchObject({ allowed: true, delayMs: 0 });
      const reservation = await service.for('queue').reserve(KEY);
      expect(reservation).toMatchObject({ allowed: true, delayMs: 0 });
      await reservation.cancel();
      expect(await service.for('window').acquire(KEY)).toMatchObject({ allowed: true });
      expect(await service.for('window').peek(KEY)).toMatchObject({ allowed: true, remaining: 1 });
    }
    await service.for('window').refund(KEY, 1);
    await service.for('window').penalize(KEY, 1);
    await service.setMode('window', 'enforce');
    expect(await service.for('window').peek(KEY)).toMatchObject({ allowed: false });
    await expect(service.for('window').reserve(KEY)).rejects.toThrow('cannot be reserved');
  });

  it.each<[keyof typeof define, LimitMode]>([
    ['login', 'off'],
    ['window', 'off'],
    ['queue', 'off'],
    ['jobs', 'off'],
    ['login', 'shadow'],
    ['window', 'shadow'],
    ['queue', 'shadow'],
    ['jobs', 'shadow'],
  ])('let calls go on that wait for %s, once it is %s', async (name, mode) => {
    const { service } = app;
    const limiter = service.for(name);
    await limiter.consume(KEY, name === 'login' ? 10 : 1);
    const { answered } = watchAnswers();
    const waiting = [limiter.acquire(KEY), limiter.acquire(KEY)];
    await answered(1);
    await service.setMode(name, mode, { key: 'tenant:*' });
    await Promise.all(waiting);
    if (mode === 'shadow' || name === 'jobs') return;
    await service.clearMode(name, { key: 'tenant:*' });
    // Nothing is left of what they had reserved.
    const left = name === 'queue' ? 5 : 0;
    await until(async () => (await limiter.peek(KEY)).remaining, left);
  });

  it('and rates of other keys ask nothing for calls that wait', async () => {
    const { service } = app;
    const { answers, answered } = watchAnswers();
    const waiting = ['window', 'login'].map(async (name) => {
      await service.for(name).consume(KEY, name === 'login' ? 10 : 1);
      await service.for(name).acquire(KEY);
    });
    await answered(2);
    for (let count = 0; count < 10; count++) {
      for (const name of ['window', 'login']) {
        await service.setRate(name, { rate: 20 + count }, { key: 'tenant:other' });
        await service.setMode(name, 'off', { key: 'tenant:off' });
      }
    }
    expect(answers).toHaveLength(2);
    for (const name of ['window', 'login'])
      await service.setRate(name, { rate: 1000, interval: 10 }, { key: 'tenant:a*' });
    await Promise.all(waiting);
  });

  it.each<[string, () => Promise<unknown>, string | RegExp]>([
    [
      'a mode',
      () => app.service.setMode('login', 'dry' as never),
      "mode: expected one of enforce, shadow, off, received 'dry'",
    ],
    ['no mode', () => app.service.setMode('login', undefined as never), 'mode: missing'],
    ['a name', () => app.service.setMode('nope', 'off'), "unknown limit 'nope'"],
    ['a key', () => app.service.setMode('login', 'off', { key: 'a*b' }), /key: expected .+, received 'a\*b'/],
    [
      'a duration',
      () => app.service.setMode('login', 'off', { expiresIn: '2y' }),
      /expiresIn: expected .+, received '2y'/,
    ],
    ['an option', () => app.service.setMode('login', 'off', { inherit: 'keep' } as never), "unknown option 'inherit'"],
    ['a name to clear', () => app.service.clearMode('nope'), "unknown limit 'nope'"],
    ['a name to ask of', () => app.service.getMode('nope'), "unknown limit 'nope'"],
  ])('refuse %s that is wrong, and change nothing', async (_what, call, message) => {
    await expect(call()).rejects.toThrow(RateLimitConfigError);
    await expect(call()).rejects.toThrow(message);
    expect(await app.service.getMode('login')).toMatchObject({ mode: 'enforce', source: 'configured' });
  });
});

const tenantOf = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-tenant']!;
let tried: TriedApp | undefined;
afterEach(() => tried?.close());

it('a limit that is off is in no header of a route, and charges no request', async () => {
  @Controller()
  class LoginController {
    @Get()
    @RateLimit('login', 'window')
    get() {
      return 'ok';
    }
  }
  const app = (tried = await TriedApp.start({
    imports: [RateLimitModule.forRoot({ define: { ...define, login: { ...define.login, key: tenantOf } } })],
    controllers: [LoginController],
  }));
  await app.limiters.setMode('window', 'off');
  await app.limiters.setMode('login', 'off', { key: 'acme' });
  const mine = await app.get('/', { 'x-tenant': 'acme' });
  expect([mine.status, mine.headers.get('ratelimit-policy')]).toEqual([200, null]);
  const other = await app.get('/', { 'x-tenant': 'other' });
  expect(other.headers.get('ratelimit-policy')).toBe('"login";q=10;w=3600');
  await app.limiters.setMode('window', 'enforce');
  expect((await app.get('/', { 'x-tenant': 'acme' })).status).toBe(200);
  expect((await app.get('/', { 'x-tenant': 'acme' })).status).toBe(429);
  await app.limiters.setMode('window', 'shadow');
  expect((await app.get('/', { 'x-tenant': 'acme' })).status).toBe(200);
});
