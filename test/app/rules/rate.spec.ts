import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, type ExecutionContext, Get, Logger, Post, UseGuards } from '@nestjs/common';
import {
  type DynamicLimit,
  type LimitDefinition,
  LimiterService,
  type LimitSpec,
  RateLimit,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../../lib/index.js';
import { adapters, HttpApp, startUp } from '../../e2e/http-app.js';
import {
  CallerGuard,
  controllerWith,
  headerOf,
  OpenController,
  reported,
  requestOf,
  UsersController,
} from './dynamic-app.js';

const RATES: Record<string, number | null> = { free: 3, pro: 6, unlimited: null };
const rate = (context: ExecutionContext) => RATES[requestOf(context).user?.plan ?? 'free']!;
const ofPlan: DynamicLimit = { name: 'plan', algo: 'fixed-window', interval: '1m', key: 'user', rate };
const byHeader: DynamicLimit = {
  algo: 'fixed-window',
  interval: '1m',
  key: 'global',
  rate: async (context) => Number(headerOf(context, 'x-rate') ?? 4),
};

let app: HttpApp | undefined;
let logged: jest.SpiedFunction<Logger['error']>;
beforeEach(() => {
  logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
});
afterEach(async () => {
  await app?.close();
  app = undefined;
  jest.restoreAllMocks();
});

const start = async (
  limits: RateLimitModuleOptions,
  controllers: NonNullable<Parameters<typeof startUp>[1]> = [OpenController],
) => (app = await HttpApp.start('express', { controllers, limits }));
const ask = async (path: string, headers?: Record<string, string>) => reported(await app!.get(path, headers));

describe.each(adapters)('a rate by the request over %s', (framework) => {
  it('holds for all routes, each plan at its own, in one counter', async () => {
    app = await HttpApp.start(framework, { controllers: [UsersController], limits: { limits: [ofPlan] } });
    expect(await ask('/users', { 'x-user': '1/free' })).toEqual([['plan', 3, 2]]);
    expect(await ask('/users', { 'x-user': '2/pro' })).toEqual([['plan', 6, 5]]);
    expect(await ask('/users', { 'x-user': '3/unlimited' })).toEqual([]);
    expect(await app.statuses(3, '/users', { 'x-user': '1/free' })).toEqual([200, 200, 429]);
    // Its plan has changed: what is used stays used.
    expect(await ask('/users', { 'x-user': '1/pro' })).toEqual([['plan', 6, 2]]);
    expect(await app.statuses(1, '/users', { 'x-user': '1/free' })).toEqual([429]);
  });

  it('is named for no rate where it has no name', async () => {
    app = await HttpApp.start(framework, { controllers: [OpenController], limits: { limits: [byHeader] } });
    const name = 'fixed-window:dynamic/1m:global';
    expect(await ask('/open')).toEqual([[name, 4, 3]]);
    expect(await ask('/other', { 'x-rate': '9' })).toEqual([[name, 9, 7]]);
  });
});

it.each<[string, DynamicLimit]>([
  ['gcra', { algo: 'gcra', rate, interval: '1m' }],
  ['token-bucket', { algo: 'token-bucket', rate, interval: '1m' }],
  ['sliding-window', { algo: 'sliding-window', rate, interval: '1m' }],
  ['sliding-log', { algo: 'sliding-log', rate, interval: '1m' }],
  ['leaky-bucket', { algo: 'leaky-bucket', rate, interval: '10ms', queue: 9 }],
  ['calendar-window', { algo: 'calendar-window', rate, period: 'minute' }],
])('can be that of a limit of %s', async (_, limit) => {
  await start({ limits: [{ ...limit, name: 'plan', key: 'user' }] }, [UsersController]);
  const [[, free]] = (await ask('/users', { 'x-user': '1/free' })) as [[string, number, number]];
  const [[, pro]] = (await ask('/users', { 'x-user': '2/pro' })) as [[string, number, number]];
  expect([free, pro]).toEqual(limit.algo === 'leaky-bucket' ? [10, 10] : [3, 6]);
});

it('goes together with options that depend on the rate', async () => {
  const limits: DynamicLimit[] = [
    { name: 'a', algo: 'gcra', rate: () => 2000, interval: '1m', prefetch: { units: 100, ttl: '1s' } },
    { name: 'b', algo: 'gcra', rate: () => 10, interval: '1m', burst: 20 },
  ];
  await start({ limits });
  expect((await ask('/open')).map(([name, quota]) => [name, quota])).toEqual([
    ['a', expect.any(Number)],
    ['b', 20],
  ]);
});

it('holds for controllers and routes, and for each route by itself', async () => {
  const perRoute: DynamicLimit = { ...byHeader, name: 'each', perRoute: true };
  @Controller('own')
  @RateLimit({ ...byHeader, name: 'all' }, perRoute)
  class Own {
    @Get('one')
    @RateLimit({ ...byHeader, name: 'one' })
    one() {}

    @Get('two')
    @SkipRateLimit('all')
    two() {}

    @Post('two')
    @UseGuards(CallerGuard)
    post() {}
  }
  await start({ limits: [{ ...byHeader, name: 'routes', perRoute: true }] }, [Own]);
  for (const left of [3, 2]) {
    expect(await ask('/own/one')).toEqual([
      ['routes', 4, left],
      ['all', 4, left],
      ['each', 4, left],
      ['one', 4, left],
    ]);
  }
  expect(await ask('/own/two')).toEqual([
    ['routes', 4, 3],
    ['each', 4, 3],
  ]);
});

it('is shown by explanations', async () => {
  await start({ limits: [byHeader] });
  const query = { controller: OpenController, handler: 'open', key: 'global' };
  const { functions } = await app!.nest.get(LimiterService).explain(query);
  expect(functions).toMatchObject([{ origin: { level: 'module', location: 'limits[0]' }, asked: false }]);
});

describe('a rate by the request that is wrong', () => {
  it.each<[unknown, RegExp]>([
    [NaN, /rate for \S+: expected a whole number >= 1, received NaN/],
    [-1, /rate for \S+: expected a whole number >= 1, received -1/],
    [0, /rate for \S+: expected a whole number >= 1, received 0/],
    [1.5, /rate for \S+: expected a whole number >= 1, received 1.5/],
    [Infinity, /rate for \S+: expected a whole number >= 1, received Infinity/],
    ['4', /rate for \S+: expected a whole number >= 1, or null if the limit does not apply, received '4'/],
    [undefined, /rate for \S+: expected a whole number >= 1, or null if the limit does not apply, received undefined/],
    [
      { rate: 4 },
      /rate for \S+: expected a whole number >= 1, or null if the limit does not apply, received \{ rate: 4 \}/,
    ],
    [new Promise(() => {}), /returned nothing within 50 ms/],
  ])('%p: no request passes, and the log names place and route', async (found, text) => {
    const caught: unknown[] = [];
    await start({ limits: [{ ...byHeader, rate: () => found as number }], resolveTimeout: 50 });
    app!.nest.useLogger({ log() {}, warn() {}, error: (...line: unknown[]) => void caught.push(...line) });
    expect(await app!.statuses(2, '/open')).toEqual([500, 500]);
    const lines = [...caught, ...logged.mock.calls.flat()].map((line) =>
      line instanceof Error ? line.message : String(line),
    );
    expect(lines.find((line) => text.test(line))).toMatch(/^limits\[0\](\.rate)? for OpenController\.open: /);
  });

  it.each<[string, RateLimitModuleOptions, string | RegExp]>([
    [
      'in define',
      { define: { plan: ofPlan as unknown as LimitDefinition } },
      "define.plan.rate: expected a whole number; a function of the context may be the 'rate' in the module's 'limits' and in @RateLimit, received [Function: rate]",
    ],
    [
      'in phase middleware',
      { limits: [{ ...byHeader, phase: 'middleware' }] },
      "limits[0].phase: expected guard or authenticated where 'rate' is a function, received 'middleware'",
    ],
    [
      'of an algorithm without one',
      { limits: [{ algo: 'concurrency', limit: 1, ttl: '1m', rate: () => 1 } as unknown as DynamicLimit] },
      "limits[0]: option 'rate' is not an option of 'concurrency': it belongs to fixed-window, calendar-window, sliding-window, sliding-log, token-bucket, gcra and leaky-bucket",
    ],
    [
      'beside a wrong option',
      { limits: [{ ...byHeader, interval: '0s' }] },
      /limits\[0\]\.interval: expected .+, received '0s'/,
    ],
    [
      'beside an unknown option',
      { limits: [{ ...byHeader, rte: 5 } as DynamicLimit] },
      "limits[0]: unknown option 'rte'. Did you mean 'rate'?",
    ],
    [
      'twice',
      { limits: [ofPlan, ofPlan] },
      "two limits have the name 'plan'. Give each limit of one place its own 'name'",
    ],
  ])('%s is refused at start-up', async (_, options, message) => {
    await expect(startUp(options)).rejects.toThrow(message);
  });

  it('on a route that would replace another function without a name is refused at start-up', async () => {
    const other = { ...byHeader, rate: () => 5 };
    const message = "a limit without a name would replace one of another place ('fixed-window:dynamic/1m:global')";
    await expect(startUp({ limits: [byHeader] }, [controllerWith(other)])).rejects.toThrow(message);
  });

  it('in code is refused', async () => {
    await start({});
    const limiters = app!.nest.get(LimiterService);
    expect(() => limiters.for(ofPlan as unknown as LimitDefinition)).toThrow(
      /^LimiterService\.for\.rate: expected a whole number.+, received \[Function: rate\]/,
    );
    expect((): LimitSpec => ofPlan).not.toThrow();
  });
});
