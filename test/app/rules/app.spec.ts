import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, type ExecutionContext, Get, HttpException, Logger, type Type } from '@nestjs/common';
import {
  type LimitAnswer,
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  type ModuleLimit,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../../lib/index.js';
import { adapters, HttpApp, startUp } from '../../e2e/http-app.js';
import { CallerGuard, controllerWith, OpenController, reported, requestOf, UsersController } from './dynamic-app.js';

const minute = { algo: 'fixed-window', interval: '1m', key: 'global' } as const;
const fixed: LimitDefinition = { ...minute, name: 'fixed', rate: 100 };
const never = () => new Promise<never>(() => {});

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

async function start(limits: RateLimitModuleOptions, controllers: Type[] = [OpenController, UsersController]) {
  return (app = await HttpApp.start('express', { controllers, limits }));
}

describe.each(adapters)('limits that functions choose for all routes over %s', (framework) => {
  const plans: Record<string, LimitAnswer> = {
    free: { ...minute, name: 'plan', rate: 2, key: 'user' },
    pro: [{ ...minute, name: 'plan', rate: 5, key: 'user' }, false, 'burst'],
    unlimited: null,
    internal: false,
  };
  const byPlan = (context: ExecutionContext) => plans[requestOf(context).user?.plan ?? 'free']!;

  it.each([
    ['at once', byPlan],
    ['later', async (context: ExecutionContext) => byPlan(context)],
  ])('stand beside others: one, several or none, %s', async (_, choose) => {
    app = await HttpApp.start(framework, {
      controllers: [OpenController, UsersController],
      limits: { limits: [fixed, choose], define: { burst: { ...minute, rate: 50 } } },
    });
    const ask = async (user: string) => reported(await app!.get('/users', { 'x-user': user }));
    expect(await ask('1/free')).toEqual([
      ['fixed', 100, 99],
      ['plan', 2, 1],
    ]);
    expect(await ask('2/pro')).toEqual([
      ['fixed', 100, 98],
      ['plan', 5, 4],
      ['burst', 50, 49],
    ]);
    expect(await ask('3/unlimited')).toEqual([['fixed', 100, 97]]);
    expect(await ask('4/internal')).toEqual([['fixed', 100, 96]]);
    expect(await app.statuses(3, '/users', { 'x-user': '1/free' })).toEqual([200, 429, 429]);
    // Whoever changes the plan keeps what is used.
    expect(await ask('1/pro')).toContainEqual(['plan', 5, 2]);
  });

  it('count across routes', async () => {
    app = await HttpApp.start(framework, {
      controllers: [OpenController],
      limits: { limits: [() => [{ ...minute, rate: 2 }]] },
    });
    expect([...(await app.statuses(2, '/open')), ...(await app.statuses(1, '/other'))]).toEqual([200, 200, 429]);
  });
});

it('choose for controllers, too', async () => {
  await start({}, [controllerWith(() => ({ ...minute, rate: 1 }))]);
  expect([...(await app!.statuses(1, '/own/one')), ...(await app!.statuses(1, '/own/two'))]).toEqual([200, 429]);
});

it('can be skipped by name, or all together, and then functions are not called', async () => {
  let asked = 0;
  const choose = () => (asked++, { ...minute, name: 'chosen', rate: 1 });
  @Controller()
  class Skipping {
    @Get('some')
    @SkipRateLimit('chosen')
    some() {}

    @Get('all')
    @SkipRateLimit()
    all() {}
  }
  await start({ limits: [fixed, choose] }, [Skipping]);
  expect(reported(await app!.get('/some'))).toEqual([['fixed', 100, 99]]);
  expect([reported(await app!.get('/all')), asked]).toEqual([[], 1]);
});

it.each([
  ['where a user is known', true],
  ['where no guard can find a user', false],
])('are decided in one call with the others %s, all or none', async (_, isKnown) => {
  const store = new MemoryStore();
  const decide = jest.spyOn(store, 'decide');
  app = await HttpApp.start('express', {
    controllers: isKnown ? [OpenController, UsersController] : [OpenController],
    limits: { store, limits: [fixed, async () => ({ ...minute, name: 'chosen', rate: 1 })] },
    configure: (nest) =>
      nest.use((request: { user?: object }, _response: unknown, next: () => void) => {
        if (isKnown) request.user = { id: '1' };
        next();
      }),
  });
  expect(await app.statuses(2, '/open')).toEqual([200, 429]);
  expect(decide).toHaveBeenCalledTimes(2);
  expect(reported(await app.get('/open'))[0]).toEqual(['fixed', 100, 99]);
  await store.close();
});

it('wait for a global guard that may find a user', async () => {
  const users: unknown[] = [];
  app = await HttpApp.start('express', {
    controllers: [OpenController],
    limits: { limits: [(context) => (users.push(requestOf(context).user?.id), null)] },
    configure: (nest) => nest.useGlobalGuards(new CallerGuard()),
  });
  await app.get('/open', { 'x-user': '7/pro' });
  expect(users).toEqual(['7']);
});

it('compile equal limits once', async () => {
  const names: string[] = [];
  const seen = new Set<object>();
  const store = new MemoryStore();
  const decide = jest.spyOn(store, 'decide');
  await start({ store, limits: [() => ({ ...minute, name: 'new', rate: 50 })] });
  await app!.statuses(5, '/open');
  for (const [check] of decide.mock.calls as unknown as [{ entries: { limit: { name: string } }[] }][]) {
    for (const { limit } of check.entries) {
      names.push(limit.name);
      seen.add(limit);
    }
  }
  expect([names.length, seen.size]).toEqual([5, 1]);
  await store.close();
});

it('leave code alone', async () => {
  await start({ limits: [() => ({ ...minute, rate: 1 })], define: { emails: { ...minute, rate: 2 } } });
  const limiter = app!.nest.get(LimiterService).for('emails');
  expect((await limiter.consume('a')).remaining).toBe(1);
});

describe('a function for all routes that fails', () => {
  const wrong: [string, () => unknown, RegExp][] = [
    ['gives undefined', () => undefined, /expected the function to return a limit, .*, received undefined/],
    ['gives a number', () => 5, /expected a limit such as .*, received 5/],
    ['gives true', () => true, /expected a limit such as .*, received true/],
    ['gives an unknown name', () => 'plam', /unknown limit 'plam'\. Did you mean 'plan'\?$/],
    ['gives undefined among others', () => [fixed, undefined], /expected a limit such as .*, received undefined/],
    [
      'gives NaN as the rate',
      () => ({ ...minute, rate: NaN }),
      /rate for \S+: expected a whole number >= 1, received NaN/,
    ],
    [
      'gives a negative rate',
      () => ({ ...minute, rate: -1 }),
      /rate for \S+: expected a whole number >= 1, received -1/,
    ],
    [
      'gives Infinity',
      () => ({ ...minute, rate: Infinity }),
      /rate for \S+: expected a whole number >= 1, received Infinity/,
    ],
    ['gives text', () => ({ ...minute, rate: '10' }), /rate for \S+: expected a whole number >= 1, received '10'/],
    [
      'gives a name twice',
      () => [
        { ...minute, name: 'a', rate: 1 },
        { ...minute, name: 'a', rate: 2 },
      ],
      /two limits have the name 'a'/,
    ],
    ['gives the name of another', () => ({ ...minute, name: 'fixed', rate: 1 }), /two limits have the name 'fixed'/],
    [
      'gives phase middleware',
      () => ({ ...minute, rate: 1, phase: 'middleware' }),
      /phase for \S+: expected .*, received 'middleware'/,
    ],
    ['gives perRoute', () => ({ ...minute, rate: 1, perRoute: true }), /perRoute for \S+: expected .*, received true/],
    [
      'throws',
      () => {
        throw new TypeError('out of order');
      },
      /the function failed/,
    ],
    ['rejects', () => Promise.reject(new TypeError('out of order')), /the function failed/],
    ['never answers', never, /returned nothing within 100 ms\. Make it faster/],
  ];

  it.each(wrong)('%s: no request passes, and the log names place and route', async (_, choose, text) => {
    const limits = [fixed, choose as () => LimitAnswer];
    await start({ limits, resolveTimeout: 100, define: { plan: { ...minute, rate: 1 } } }, [OpenController]);
    const caught: unknown[] = [];
    logged.mockImplementation((...line: unknown[]) => void caught.push(...line));
    app!.nest.useLogger({ log() {}, warn() {}, error: (...line: unknown[]) => void caught.push(...line) });
    expect(await app!.statuses(1, '/open')).toEqual([500]);
    const lines = caught.map((line) => (line instanceof Error ? line.message : String(line)));
    expect(lines.find((line) => text.test(line))).toMatch(/limits(\[1\](\.\w+)?)? for OpenController\.open: /);
    expect(await app!.statuses(2, '/open')).toEqual([500, 500]);
  });

  it('throws an HttpException: that is the answer', async () => {
    await start(
      {
        limits: [
          () => {
            throw new HttpException('Unknown plan', 403);
          },
        ],
      },
      [OpenController],
    );
    expect(await app!.statuses(1, '/open')).toEqual([403]);
    expect(logged).not.toHaveBeenCalled();
  });

  it.each<[unknown, string | RegExp]>([
    ['1x', /resolveTimeout: expected .+, received '1x'/],
    [0, /resolveTimeout: expected .+, received 0/],
    ['2h', "resolveTimeout: expected at most 1 hour, received '2h'"],
  ])('resolveTimeout: %p is refused at start-up', async (resolveTimeout, message) => {
    await expect(startUp({ resolveTimeout: resolveTimeout as string })).rejects.toThrow(message);
  });

  it.each<[unknown, string]>([
    [undefined, "limits[1]: expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received undefined"],
    ['login', "limits[1]: expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received 'login'"],
    [[], "limits[1]: expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received []"],
  ])('what is no limit beside one, %p, is refused at start-up', async (other, message) => {
    await expect(startUp({ limits: [() => null, other as ModuleLimit] })).rejects.toThrow(message);
  });
});

it('needs a guard on every route, as other limits do', async () => {
  await expect(
    startUp({ limits: [() => null], guard: false } as RateLimitModuleOptions, [OpenController]),
  ).rejects.toThrow("no RateLimitGuard checks the module's 'limits'");
});

it('is asked where the guard finds a user first', async () => {
  const users: unknown[] = [];
  await start({ limits: [(context) => (users.push(requestOf(context).user?.id), null)] });
  await app!.get('/users', { 'x-user': '7/pro' });
  expect(users).toEqual(['7']);
});

it('is shown by explanations with its place', async () => {
  await start({ limits: [() => ({ ...minute, name: 'chosen', rate: 5 }), fixed] });
  const service = app!.nest.get(LimiterService);
  const { limits, functions } = await service.explain({ controller: OpenController, handler: 'open', key: 'global' });
  expect(limits).toMatchObject([{ name: 'fixed', origin: { level: 'module', location: 'limits[1]' } }]);
  expect(functions).toMatchObject([{ origin: { level: 'module', location: 'limits[0]' }, asked: false }]);
});
