import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  Param,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common';
import {
  type CheckResult,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  RateLimitGuard,
  RateLimitModule,
  SkipRateLimit,
} from '../../lib/index.js';
import { type AppOptions, everyAdapter, HttpApp } from './http-app.js';
import { leftOf } from '../support/http/responses.js';
import { until } from '../support/time/until.js';

function limit(name: string, rate: number, more: Partial<LimitDefinition> = {}): LimitDefinition {
  return { name, algo: 'fixed-window', rate, interval: '1m', ...more } as LimitDefinition;
}

function header(context: ExecutionContext, name: string): string | undefined {
  return context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>().headers[name];
}

/** Stands for a login: the header names the user. */
@Injectable()
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: unknown }>();
    const id = request.headers['x-user'];
    if (id === undefined) throw new UnauthorizedException();
    request.user = { id, plan: request.headers['x-plan'] };
    return true;
  }
}

/** Hides a secret from whatever logs the raw headers. */
@Injectable()
class HidingGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ rawHeaders: string[]; raw?: { rawHeaders: string[] } }>();
    const raw = request.raw ?? request;
    raw.rawHeaders = raw.rawHeaders.filter((each) => each !== 'secret');
    return true;
  }
}

describe.each(everyAdapter)('routes over %s', (framework) => {
  let app: HttpApp | undefined;
  const start = async (options: AppOptions) => (app = await HttpApp.start(framework, options));

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  describe('scopes and merging', () => {
    @Controller('a')
    @RateLimit(limit('controller', 10))
    class AController {
      @Get('one')
      @RateLimit(limit('route', 10))
      one() {}

      @Get('two')
      @RateLimit(limit('route', 10))
      @RateLimit(limit('second', 10))
      two() {}

      @Get('nearer')
      @RateLimit(limit('controller', 3), limit('module', 2))
      nearer() {}

      @Get('skip-all')
      @SkipRateLimit()
      skipAll() {}

      @Get('skip-named')
      @SkipRateLimit('module')
      skipNamed() {}

      @Get('only-own')
      @SkipRateLimit()
      @RateLimit(limit('own', 5))
      onlyOwn() {}
    }

    @Controller('b')
    @RateLimit(limit('controller', 10))
    @SkipRateLimit('module')
    class BController {
      @Get()
      list() {}
    }

    const limits = { limits: [limit('module', 10)] };

    it('counts each limit where it is declared', async () => {
      const { get } = bound(await start({ controllers: [AController, BController], limits }));
      expect(leftOf(await get('/a/one'))).toEqual({ module: 9, controller: 9, route: 9 });
      expect(leftOf(await get('/a/two'))).toEqual({ module: 8, controller: 8, route: 9, second: 9 });
      expect(leftOf(await get('/a/one'))).toEqual({ module: 7, controller: 7, route: 8 });
      expect(leftOf(await get('/b'))).toEqual({ controller: 9 });
    });

    it('lets the nearer limit of a name win, with a counter of its own', async () => {
      const { get } = bound(await start({ controllers: [AController], limits }));
      await get('/a/one');
      expect(leftOf(await get('/a/nearer'))).toEqual({ module: 1, controller: 2 });
      expect(leftOf(await get('/a/one'))).toEqual({ module: 8, controller: 8, route: 8 });
    });

    it('skips all limits from farther out, or those named', async () => {
      const { get } = bound(await start({ controllers: [AController], limits }));
      const free = await get('/a/skip-all');
      expect([free.status, free.headers.get('ratelimit')]).toEqual([200, null]);
      expect(leftOf(await get('/a/skip-named'))).toEqual({ controller: 9 });
      expect(leftOf(await get('/a/only-own'))).toEqual({ own: 4 });
      expect(leftOf(await get('/a/one'))).toMatchObject({ module: 9 });
    });

    it('charges no limit if one refuses', async () => {
      @Controller()
      class AllOrNothingController {
        @Get()
        @RateLimit(limit('few', 1), limit('many', 10))
        list() {}
      }
      const { get } = bound(await start({ controllers: [AllOrNothingController], limits }));
      await get('/');
      expect(leftOf(await get('/'))).toEqual({ module: 9, few: 0, many: 9 });
      expect(leftOf(await get('/'))).toEqual({ module: 9, few: 0, many: 9 });
    });

    it('shares a defined limit between routes, features and code', async () => {
      @Controller()
      class NamedController {
        @Get('one')
        @RateLimit('login')
        one() {}

        @Get('two')
        @RateLimit('login', 'feature')
        two() {}
      }
      @Module({ imports: [RateLimitModule.forFeature({ feature: limit('feature', 4) })] })
      class FeatureModule {}
      const { get, nest } = bound(
        await start({
          controllers: [NamedController],
          imports: [FeatureModule],
          limits: { define: { login: { algo: 'fixed-window', rate: 5, interval: '1m' } } },
        }),
      );
      expect(leftOf(await get('/one'))).toEqual({ login: 4 });
      expect(leftOf(await get('/two'))).toEqual({ login: 3, feature: 3 });
      const login = nest.get(LimiterService).for('login');
      expect((await login.consume('ip:127.0.0.1', 2)).remaining).toBe(1);
      expect(leftOf(await get('/one'))).toEqual({ login: 0 });
      await login.reset('ip:127.0.0.1');
      expect(leftOf(await get('/one'))).toEqual({ login: 4 });
    });
  });

  describe('limit functions', () => {
    const plans: Record<string, LimitDefinition> = { free: limit('plan', 2), pro: limit('plan', 20) };
    const ask = jest.fn((plan: string | undefined) => (plan === undefined ? null : plans[plan]!));

    @Controller()
    @RateLimit(limit('plan', 100))
    class PlanController {
      @Get('plan')
      @RateLimit((context) => ask(header(context, 'x-plan')))
      plan(@RateLimitDecision() decision: CheckResult) {
        return decision;
      }

      @Get('several')
      @RateLimit(() => Promise.resolve(['named', limit('other', 7)]))
      several() {}

      @Get('twice')
      @RateLimit(() => ['named', limit('named', 7)])
      twice() {}

      @Get('user')
      @UseGuards(AuthGuard)
      @RateLimit((context) => plans[context.switchToHttp().getRequest<{ user: { plan: string } }>().user.plan]!)
      user() {}
    }

    const options: AppOptions = {
      controllers: [PlanController],
      limits: { define: { named: limit('named', 5) }, limits: [limit('module', 50)] },
    };

    it('asks once a request, for a limit or null, which may replace a farther one', async () => {
      const { get } = bound(await start(options));
      ask.mockClear();
      expect(leftOf(await get('/plan', { 'x-plan': 'free' }))).toEqual({ module: 49, plan: 1 });
      expect(ask).toHaveBeenCalledTimes(1);
      expect(leftOf(await get('/plan', { 'x-plan': 'pro' }))).toEqual({ module: 48, plan: 18 });
      expect(leftOf(await get('/plan'))).toEqual({ module: 47, plan: 99 });
    });

    it('takes several limits, also as a promise', async () => {
      const { get } = bound(await start(options));
      expect(leftOf(await get('/several'))).toEqual({ module: 49, plan: 99, named: 4, other: 6 });
      expect((await get('/twice')).status).toBe(500);
    });

    it('waits for the guards of the route if no user is known yet', async () => {
      const { get, statuses } = bound(await start(options));
      const user = { 'x-user': '1', 'x-plan': 'free' };
      expect(leftOf(await get('/user', user))).toMatchObject({ module: 49 });
      expect(await statuses(2, '/user', user)).toEqual([200, 429]);
    });
  });

  describe('two phases', () => {
    @Controller()
    @UseGuards(AuthGuard)
    class AccountController {
      @Get()
      @RateLimit(limit('mine', 2, { key: 'user' }), limit('late', 10, { phase: 'authenticated' }), limit('early', 5))
      account(@RateLimitDecision() decision: CheckResult) {
        return decision;
      }

      @Get('item/:id')
      @RateLimit(limit('mine', 1, { key: 'user' }))
      item(@Param('id') id: string) {
        return id;
      }
    }

    it('counts a user after the guard of the route, and every request before it', async () => {
      const { get } = bound(await start({ controllers: [AccountController] }));
      const anonymous = await get('/');
      expect([anonymous.status, leftOf(anonymous)]).toEqual([401, { early: 4 }]);
      const first = await get('/', { 'x-user': '1' });
      expect(leftOf(first)).toEqual({ early: 3, mine: 1, late: 9 });
      const result = (await first.json()) as CheckResult;
      expect(result).toMatchObject({ allowed: true, tightest: { limit: 'mine', remaining: 1 } });
      expect(result.decisions.map(({ limit: name }) => name)).toEqual(['early', 'mine', 'late']);
      expect(leftOf(await get('/', { 'x-user': '2' }))).toEqual({ early: 2, mine: 1, late: 8 });
      await get('/', { 'x-user': '1' });
      const refused = await get('/', { 'x-user': '1' });
      expect([refused.status, leftOf(refused)]).toEqual([429, { early: 0, mine: 0, late: 7 }]);
      expect(await refused.json()).toMatchObject({ limits: ['mine'] });
    });

    it('refuses before pipes and handler', async () => {
      const { statuses } = bound(await start({ controllers: [AccountController] }));
      expect(await statuses(2, '/item/1', { 'x-user': '1' })).toEqual([200, 429]);
      expect(await statuses(2, '/item/1', { 'x-user': '2' })).toEqual([200, 429]);
    });

    it('counts a user whose guard replaces the raw headers', async () => {
      @Controller()
      @UseGuards(AuthGuard, HidingGuard)
      class HidingController {
        @Get()
        @RateLimit(limit('mine', 1, { key: 'user' }))
        hidden() {}
      }
      const { statuses } = bound(await start({ controllers: [HidingController] }));
      expect(await statuses(2, '/', { 'x-user': '1' })).toEqual([200, 429]);
    });

    it('checks nothing after the guards where no guard of ours stood', async () => {
      const { get } = bound(await start({ controllers: [AccountController], limits: { guard: 'custom' } }));
      expect(leftOf(await get('/', { 'x-user': '1' }))).toEqual({});
    });
  });

  it('charges once if the guard is bound globally and on the route', async () => {
    @Controller()
    @UseGuards(RateLimitGuard)
    class TwiceController {
      @Get()
      @UseGuards(RateLimitGuard)
      @RateLimit(limit('route', 10), limit('mine', 10, { phase: 'authenticated' }))
      list() {}
    }
    const { get } = bound(await start({ controllers: [TwiceController] }));
    expect(leftOf(await get('/'))).toEqual({ route: 9, mine: 9 });
    await app?.close();
    const unbound = bound(await start({ controllers: [TwiceController], limits: { guard: false } }));
    expect(leftOf(await unbound.get('/'))).toEqual({ route: 9, mine: 9 });
  });

  it('takes cost and skip from the request', async () => {
    @Controller()
    class CostController {
      @Get()
      @RateLimit(
        limit('cost', 10, { cost: (context) => Number(header(context, 'x-cost') ?? 1) }),
        limit('slow', 10, {
          cost: (context) => Promise.resolve(Number(header(context, 'x-cost') ?? 1)),
          skip: (context) => Promise.resolve(header(context, 'x-skip') === 'async'),
        }),
        limit('skip', 10, { skip: (context) => header(context, 'x-skip') === 'sync' }),
        limit('two', 10, { cost: 2 }),
      )
      list() {}
    }
    const { get } = bound(await start({ controllers: [CostController] }));
    expect(leftOf(await get('/', { 'x-cost': '4' }))).toEqual({ cost: 6, slow: 6, skip: 9, two: 8 });
    expect(leftOf(await get('/', { 'x-skip': 'sync' }))).toEqual({ cost: 5, slow: 5, two: 6 });
    expect(leftOf(await get('/', { 'x-skip': 'async' }))).toEqual({ cost: 4, skip: 8, two: 4 });
    for (const cost of ['-1', '1.5', 'x']) expect((await get('/', { 'x-cost': cost })).status).toBe(500);
    expect(leftOf(await get('/'))).toEqual({ cost: 3, slow: 4, skip: 7, two: 2 });
  });

  it('tells what is left by a limit of cost 0, and takes nothing', async () => {
    const quota = limit('quota', 1);
    @Controller()
    class StatusController {
      @Get()
      @RateLimit('quota')
      use() {}

      @Get('status')
      @RateLimit('told')
      status() {}
    }
    const limits = { define: { quota, told: { ...quota, name: 'told', cost: 0 } } };
    const { get } = bound(await start({ controllers: [StatusController], limits }));
    expect(leftOf(await get('/status'))).toEqual({ told: 1 });
    expect(leftOf(await get('/status'))).toEqual({ told: 1 });
    expect(leftOf(await get('/'))).toEqual({ quota: 0 });
    expect((await get('/')).status).toBe(429);
  });

  describe('leaky-bucket', () => {
    @Controller()
    class ShapedController {
      @Get()
      @RateLimit({ name: 'shaped', algo: 'leaky-bucket', rate: 10, interval: '1s', queue: 2 })
      list() {}

      @Get('slow')
      @RateLimit({ name: 'slow', algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 1 })
      slow() {}
    }

    it('holds requests until they may leave, and refuses what would wait too long', async () => {
      const { get } = bound(await start({ controllers: [ShapedController] }));
      const timers = jest.spyOn(globalThis, 'setTimeout');
      const began = performance.now();
      const timed = async () => [(await get('/')).status, performance.now() - began] as const;
      const answers = await Promise.all([timed(), timed(), timed(), timed()]);
      expect(answers.map(([status]) => status).sort((a, b) => a - b)).toEqual([200, 200, 200, 429]);
      const allowed = answers.filter(([status]) => status === 200);
      expect(Math.max(...allowed.map(([, waited]) => waited))).toBeGreaterThanOrEqual(199);
      // HTTP clients and servers also have timers.
      const waits = timers.mock.calls.map(([, ms]) => ms);
      timers.mockRestore();
      expect(waits).toEqual(expect.arrayContaining([100, 200]));
    });

    it('gives the place back when the client goes away', async () => {
      const { get, store, url } = bound(await start({ controllers: [ShapedController] }));
      const check = jest.spyOn(store, 'check');
      const refund = jest.spyOn(store, 'refund');
      await get('/slow');
      const leaving = new AbortController();
      const gone = fetch(`${url}/slow`, { signal: leaving.signal });
      await until(() => check.mock.calls.length === 2);
      const refused = await get('/slow');
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
      leaving.abort();
      await expect(gone).rejects.toThrow('abort');
      await until(() => refund.mock.calls.length > 0);
      await refund.mock.results[0]!.value;
      expect(refund.mock.calls[0]?.[0]).toMatchObject([{ identity: 'ip:127.0.0.1', units: 1 }]);
      // The place is free again, so the next request waits instead of being refused.
      const next = new AbortController();
      const waiting = fetch(`${url}/slow`, { signal: next.signal });
      await until(() => check.mock.calls.length === 4);
      expect(await check.mock.results[3]!.value).toMatchObject([[{ allowed: true, delayMs: 3_600_000 }]]);
      await expect(Promise.race([waiting.then(({ status }) => status), pause(20)])).resolves.toBe('still waiting');
      next.abort();
      await expect(waiting).rejects.toThrow('abort');
    });
  });
});

function bound(app: HttpApp) {
  const { nest, clock, store, url } = app;
  return { nest, clock, store, url, get: app.get.bind(app), statuses: app.statuses.bind(app) };
}

function pause(ms: number): Promise<'still waiting'> {
  return new Promise((resolve) => setTimeout(() => resolve('still waiting'), ms));
}
