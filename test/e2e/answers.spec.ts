import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type Type } from '@nestjs/common';
import {
  type CheckResult,
  type HeaderOption,
  type LimitDefinition,
  RateLimit,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { everyAdapter, HttpApp } from './http-app.js';

const burst: LimitDefinition = { name: 'burst', algo: 'gcra', rate: 40, interval: '1s' };
const hourly: LimitDefinition = { name: 'hourly', algo: 'fixed-window', rate: 5000, interval: '1h' };

function controllerWith(...specs: [LimitDefinition, ...LimitDefinition[]]): Type {
  @Controller()
  class AnswersController {
    @Get()
    @RateLimit(...specs)
    list() {
      return 'ok';
    }
  }
  return AnswersController;
}

/** The headers that tell of limits, by their lower-case names. */
function rateLimitHeaders(response: Response): Record<string, string> {
  const told = [...response.headers].filter(([name]) => name.includes('ratelimit') || name === 'retry-after');
  return Object.fromEntries(told);
}

describe.each(everyAdapter)('answers over %s', (framework) => {
  let app: HttpApp | undefined;

  const start = async (
    limits: RateLimitModuleOptions,
    controller = controllerWith(burst, hourly),
    random = Math.random,
  ) => (app = await HttpApp.start(framework, { controllers: [controller], limits, random }));

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it('tells of all limits in structured fields', async () => {
    const { get } = bound(await start({}));
    const response = await get('/');
    expect(response.status).toBe(200);
    expect(rateLimitHeaders(response)).toEqual({
      'ratelimit-policy': '"burst";q=40;w=1, "hourly";q=5000;w=3600',
      ratelimit: '"burst";r=39;t=1, "hourly";r=4999;t=3600',
    });
  });

  it('refuses with the names of the limits that refused and one Retry-After, the longest', async () => {
    const short: LimitDefinition = { name: 'short', algo: 'fixed-window', rate: 1, interval: '10s' };
    const long: LimitDefinition = {
      name: 'long',
      algo: 'fixed-window',
      rate: 1,
      interval: '90500ms',
      message: 'Later',
    };
    const { get } = bound(await start({}, controllerWith(short, long, hourly)));
    await get('/');
    const response = await get('/');
    expect(response.status).toBe(429);
    expect(await response.json()).toEqual({
      statusCode: 429,
      message: 'Later',
      error: 'Too Many Requests',
      limits: ['short', 'long'],
    });
    expect(rateLimitHeaders(response)).toEqual({
      'ratelimit-policy': '"short";q=1;w=10, "long";q=1;w=91, "hourly";q=5000;w=3600',
      ratelimit: '"short";r=0;t=10, "long";r=0;t=91, "hourly";r=4999;t=3600',
      'retry-after': '91',
    });
  });

  it('says the default message, and lets the request pass after Retry-After and not before', async () => {
    const { get, clock } = bound(await start({}, controllerWith({ ...hourly, rate: 1, interval: '30s' })));
    await get('/');
    clock.advance(2001);
    const refused = await get('/');
    expect(await refused.json()).toMatchObject({ message: 'Too many requests' });
    expect(refused.headers.get('retry-after')).toBe('28');
    clock.advance(27_998);
    expect((await get('/')).status).toBe(429);
    clock.advance(1);
    expect((await get('/')).status).toBe(200);
  });

  it('has no Retry-After and no t where waiting never helps', async () => {
    const { get } = bound(await start({}, controllerWith({ ...burst, cost: 41 })));
    const response = await get('/');
    expect(response.status).toBe(429);
    expect(rateLimitHeaders(response)).toEqual({ 'ratelimit-policy': '"burst";q=40;w=1', ratelimit: '"burst";r=40' });
  });

  it('quotes names and clamps numbers that structured fields cannot hold', async () => {
    const odd: LimitDefinition = { ...hourly, name: 'a "b" \\', rate: Number.MAX_SAFE_INTEGER, interval: 1 };
    const { get } = bound(await start({}, controllerWith(odd)));
    expect(rateLimitHeaders(await get('/'))).toEqual({
      'ratelimit-policy': '"a \\"b\\" \\\\";q=999999999999999;w=1',
      ratelimit: '"a \\"b\\" \\\\";r=999999999999999;t=1',
    });
  });

  const formats: [string, HeaderOption, Record<string, string>, Record<string, string>][] = [
    [
      'draft-6',
      'draft-6',
      {
        'ratelimit-policy': '2;w=10, 5000;w=3600',
        'ratelimit-limit': '2',
        'ratelimit-remaining': '1',
        'ratelimit-reset': '10',
      },
      {
        'ratelimit-policy': '2;w=10, 5000;w=3600',
        'ratelimit-limit': '2',
        'ratelimit-remaining': '0',
        'ratelimit-reset': '10',
        'retry-after': '10',
      },
    ],
    [
      'legacy',
      'legacy',
      { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '10' },
      { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '10', 'retry-after': '10' },
    ],
    ['none', false, {}, { 'retry-after': '10' }],
    [
      'a list with a formatter',
      [
        'legacy',
        ({ tightest }, limits) => ({
          'X-Own-RateLimit': `${tightest.limit} of ${limits.map(({ algo }) => algo).join()}`,
        }),
      ],
      {
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '1',
        'x-ratelimit-reset': '10',
        'x-own-ratelimit': 'few of fixed-window,fixed-window',
      },
      {
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': '10',
        'x-own-ratelimit': 'few of fixed-window,fixed-window',
        'retry-after': '10',
      },
    ],
  ];

  it.each(formats)('headers: %s', async (_, headers, allowed, refused) => {
    const few: LimitDefinition = { name: 'few', algo: 'fixed-window', rate: 2, interval: '10s' };
    const { get } = bound(await start({ headers }, controllerWith(few, hourly)));
    expect(rateLimitHeaders(await get('/'))).toEqual(allowed);
    await get('/');
    expect(rateLimitHeaders(await get('/'))).toEqual(refused);
  });

  describe('retryJitter', () => {
    const few: LimitDefinition = { name: 'few', algo: 'fixed-window', rate: 1, interval: '10s' };
    const more: LimitDefinition = { name: 'more', algo: 'fixed-window', rate: 1, interval: '1m' };
    const formats: HeaderOption = ['draft-8', 'legacy'];

    it.each([
      [0, '10', '60'],
      [0.5, '13', '75'],
      [0.999, '15', '90'],
    ])('makes the waits of refusals longer, all by the share %f of it', async (drawn, short, long) => {
      const results: CheckResult[] = [];
      const random = jest.fn(() => drawn);
      const options: RateLimitModuleOptions = {
        retryJitter: 0.5,
        headers: formats,
        body: (_, result) => {
          results.push(result);
          return {};
        },
      };
      const { get } = bound(await start(options, controllerWith(few, more, hourly), random));
      expect(rateLimitHeaders(await get('/'))['ratelimit']).toBe(
        '"few";r=0;t=10, "more";r=0;t=60, "hourly";r=4999;t=3600',
      );
      expect(random).not.toHaveBeenCalled();
      expect(rateLimitHeaders(await get('/'))).toMatchObject({
        ratelimit: `"few";r=0;t=${short}, "more";r=0;t=${long}, "hourly";r=4999;t=3600`,
        'x-ratelimit-reset': long,
        'retry-after': long,
      });
      expect(random).toHaveBeenCalledTimes(1);
      expect(results.map(({ decisions }) => decisions.map(({ retryAfterMs }) => retryAfterMs))).toEqual([
        [10_000, 60_000, 0],
      ]);
    });

    it('is nothing unless asked for, and no wait where waiting never helps', async () => {
      const { get } = bound(await start({}, controllerWith(few), () => 0.999));
      await get('/');
      expect((await get('/')).headers.get('retry-after')).toBe('10');
      await app?.close();
      const never = bound(await start({ retryJitter: 1 }, controllerWith({ ...burst, cost: 41 }), () => 0));
      expect(rateLimitHeaders(await never.get('/'))).toEqual({
        'ratelimit-policy': '"burst";q=40;w=1',
        ratelimit: '"burst";r=40',
      });
    });
  });

  it('lets a shadow limit report and never refuse', async () => {
    const shadow: LimitDefinition = { name: 'shadow', algo: 'fixed-window', rate: 1, interval: '1m', mode: 'shadow' };
    const few: LimitDefinition = { name: 'few', algo: 'fixed-window', rate: 2, interval: '10s' };
    const { get } = bound(await start({}, controllerWith(shadow, few)));
    await get('/');
    const second = await get('/');
    expect(second.status).toBe(200);
    expect(rateLimitHeaders(second)['ratelimit']).toBe('"shadow";r=0;t=60, "few";r=0;t=10');
    const third = await get('/');
    expect(await third.json()).toMatchObject({ limits: ['few'] });
    expect(third.headers.get('retry-after')).toBe('10');
  });
});

function bound(app: HttpApp) {
  return { clock: app.clock, get: app.get.bind(app) };
}
