import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  HttpException,
  Injectable,
  Module,
  type NestInterceptor,
  type NestMiddleware,
  Param,
  RequestMethod,
  UseFilters,
  UseGuards,
  UseInterceptors,
  VersioningType,
} from '@nestjs/common';
import type { RouteInfo } from '@nestjs/common/interfaces/index.js';
import { HttpAdapterHost, RouterModule } from '@nestjs/core';
import { map } from 'rxjs';
import {
  type DecisionEvent,
  type DecisionObserver,
  type LimitDefinition,
  LimiterService,
  type ObservedDecision,
  RateLimit,
  rateLimitMiddleware,
  rateLimitOf,
  SkipRateLimit,
} from '../../../lib/index.js';
import { adapters, HttpApp, type AppOptions } from '../../e2e/http-app.js';
import { connectRedis, freshPrefix } from '../../support/limits/stores.js';

const observed: ObservedDecision[] = [];
const note = (decided: ObservedDecision) => void observed.push(decided);
const seen: (number | undefined)[] = [];

const minute = { algo: 'fixed-window', interval: '1m' } as const;

@Injectable()
class Seeing implements CanActivate, NestInterceptor {
  canActivate(context: ExecutionContext): boolean {
    seen.push(rateLimitOf(context)?.tightest.remaining);
    seen.push(rateLimitOf(context.switchToHttp().getRequest<object>())?.tightest.remaining);
    return true;
  }

  intercept(context: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(map(() => ({ remaining: rateLimitOf(context)?.tightest.remaining })));
  }
}

@Catch(HttpException)
class Describing implements ExceptionFilter {
  constructor(private readonly adapters: HttpAdapterHost) {}

  catch(error: HttpException, host: ArgumentsHost): void {
    const { allowed, decisions } = rateLimitOf(host)!;
    const body = { status: error.getStatus(), allowed, limits: decisions.map(({ limit }) => limit) };
    this.adapters.httpAdapter.reply(host.switchToHttp().getResponse(), body, 418);
  }
}

@Controller('reports')
class ReportsController {
  @Get('by/:id')
  @RateLimit({ ...minute, name: 'one', rate: 1, onDecision: note })
  one(@Param('id') id: string) {
    return id;
  }

  @Get('dry')
  @RateLimit({ ...minute, name: 'dry', rate: 1, mode: 'shadow', candidate: { rate: 2 } })
  dry() {}

  @Get('described')
  @UseFilters(Describing)
  @RateLimit({ ...minute, name: 'described', rate: 1 })
  described() {}

  @Get('seen')
  @UseGuards(Seeing)
  @UseInterceptors(Seeing)
  @RateLimit({ ...minute, name: 'seen', rate: 5 })
  seen() {}

  @Get('free')
  @UseGuards(Seeing)
  @SkipRateLimit()
  free() {}
}

@Module({ controllers: [ReportsController] })
class OpsModule {}

type Configure = NonNullable<AppOptions['configure']>;
const prefixed =
  (exclude: RouteInfo[] = []): Configure =>
  (nest) =>
    void nest.setGlobalPrefix('api', { exclude });
const versioned: Configure = (nest) => {
  nest.setGlobalPrefix('api');
  nest.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
};

const apps: HttpApp[] = [];
afterEach(async () => {
  observed.length = seen.length = 0;
  for (const app of apps.splice(0)) await app.close();
});

describe.each(adapters)('hooks over HTTP with %s', (framework) => {
  const start = async (limits: AppOptions['limits'], more: AppOptions = {}): Promise<HttpApp> => {
    const app = await HttpApp.start(framework, { controllers: [ReportsController], ...more, limits: limits ?? {} });
    apps.push(app);
    return app;
  };

  it('know the decision, the request and the route', async () => {
    const app = await start({});
    await app.statuses(2, '/reports/by/7?x=1');
    expect(observed).toHaveLength(2);
    const [first, second] = observed;
    expect(first).toMatchObject({
      limit: 'one',
      kind: 'enforced',
      outcome: 'allowed',
      identity: 'ip:127.0.0.1',
      key: 'ip:127.0.0.1',
      cost: 1,
      route: { method: 'GET', path: '/reports/by/:id' },
      class: ReportsController,
      handler: Reflect.get(ReportsController.prototype, 'one'),
      decision: { allowed: true, limit: 'one', quota: 1, remaining: 0 },
    });
    expect(second).toMatchObject({ outcome: 'refused', decision: { allowed: false, retryAfterMs: 60_000 } });
    expect(second!.context!.switchToHttp().getRequest<{ url: string }>().url).toBe('/reports/by/7?x=1');
    expect(second!.request).toBe(second!.context!.switchToHttp().getRequest());
  });

  it('of the module get what all limits decide, of any kind, beside the hooks of limits', async () => {
    const all: ObservedDecision[] = [];
    const refused: string[] = [];
    const app = await start({
      onDecision: (decided) => all.push(decided),
      onRefused: ({ limit, kind, outcome }) => refused.push(`${limit} ${kind} ${outcome}`),
    });
    await app.statuses(3, '/reports/dry');
    await app.statuses(1, '/reports/by/1');
    expect(all.map(({ limit, kind }) => `${limit} ${kind}`)).toEqual([
      'dry shadow',
      'dry candidate',
      'dry shadow',
      'dry candidate',
      'dry shadow',
      'dry candidate',
      'one enforced',
    ]);
    expect(refused).toEqual(['dry shadow shadow-refused', 'dry shadow shadow-refused', 'dry candidate shadow-refused']);
    expect(observed).toHaveLength(1);
  });

  it('are injectable classes, too', async () => {
    @Injectable()
    class Names {
      readonly all: string[] = [];
    }
    @Injectable()
    class Audit implements DecisionObserver {
      constructor(private readonly names: Names) {}
      observe({ limit }: ObservedDecision): void {
        this.names.all.push(limit);
      }
    }
    @Module({ providers: [Names, Audit], exports: [Names] })
    class AuditModule {}
    @Controller()
    class Audited {
      @Get('audited')
      @RateLimit({ ...minute, name: 'audited', rate: 1, onRefused: Audit })
      audited() {}
    }
    const app = await start({ onDecision: Audit }, { controllers: [Audited], imports: [AuditModule] });
    await app.statuses(2, '/audited');
    expect(app.nest.get(Names, { strict: false }).all).toEqual(['audited', 'audited', 'audited']);
  });

  it('get decisions of a middleware, which knows no route yet, and refusals of lists', async () => {
    const limits: LimitDefinition[] = [{ ...minute, name: 'early', rate: 9, phase: 'middleware' }];
    const app = await start(
      { limits, onDecision: note },
      { configure: (nest) => void nest.use(rateLimitMiddleware(nest)) },
    );
    await app.statuses(1, '/reports/free');
    expect(observed).toMatchObject([
      { limit: 'early', route: undefined, handler: undefined, identity: 'ip:127.0.0.1' },
    ]);
    expect((observed[0]!.request as { url?: string }).url).toBe('/reports/free');
    expect(seen).toEqual([8, 8]);
    await app.nest.get(LimiterService).deny({ ip: '127.0.0.1' });
    observed.length = 0;
    await app.statuses(1, '/reports/seen');
    expect(observed).toMatchObject([{ limit: '*', outcome: 'refused', decision: { source: 'list' } }]);
  });

  it('run in the context of the request, whatever answers it', async () => {
    const storage = new AsyncLocalStorage<string>();
    const redis = await connectRedis();
    const found: (string | undefined)[] = [];
    try {
      const app = await start(
        { redis, prefix: freshPrefix(), store: undefined as never, onDecision: () => found.push(storage.getStore()) },
        {
          controllers: [ReportsController],
          configure: (nest) =>
            void nest.use((request: { url: string }, _: unknown, next: () => void) =>
              storage.run(request.url, () => next()),
            ),
        },
      );
      const paths = Array.from({ length: 20 }, (_, index) => `/reports/by/${index}`);
      await Promise.all(paths.map((path) => app.get(path)));
      expect(new Set(found)).toEqual(new Set(paths));
      expect(found).toHaveLength(paths.length);
    } finally {
      await redis.quit();
    }
  });

  it('leave the route to subscribers of decisions$, too', async () => {
    const app = await start({});
    const events: DecisionEvent[] = [];
    app.nest.get(LimiterService).decisions$.subscribe((event) => events.push(event));
    await app.statuses(1, '/reports/by/7');
    await app.nest
      .get(LimiterService)
      .for({ ...minute, name: 'code', rate: 1 })
      .consume('a');
    expect(events).toMatchObject([
      { limit: 'one', route: { method: 'GET', path: '/reports/by/:id' } },
      { limit: 'code' },
    ]);
    expect(events[1]).not.toHaveProperty('route');
  });

  it.each<[string, AppOptions, string, string]>([
    ['a global prefix', { configure: prefixed() }, '/api/reports/by/7', '/api/reports/by/:id'],
    [
      'a global prefix that excludes it',
      { configure: prefixed([{ path: 'reports/by/:id', method: RequestMethod.GET }]) },
      '/reports/by/7',
      '/reports/by/:id',
    ],
    [
      'a global prefix that excludes another method of it',
      { configure: prefixed([{ path: 'reports/by/:id', method: RequestMethod.POST }]) },
      '/api/reports/by/7',
      '/api/reports/by/:id',
    ],
    ['a version', { configure: versioned }, '/api/v1/reports/by/7', '/api/v1/reports/by/:id'],
    [
      'the path of its module',
      { controllers: [], imports: [OpsModule, RouterModule.register([{ path: 'ops', module: OpsModule }])] },
      '/ops/reports/by/7',
      '/ops/reports/by/:id',
    ],
  ])('know the route behind %s', async (_, more, url, path) => {
    const app = await start({}, more);
    expect(await app.statuses(1, url)).toEqual([200]);
    expect(observed).toMatchObject([{ route: { method: 'GET', path } }]);
  });
});

describe.each(adapters)('rateLimitOf over HTTP with %s', (framework) => {
  const start = async (more: AppOptions = {}): Promise<HttpApp> => {
    const app = await HttpApp.start(framework, { controllers: [ReportsController], ...more });
    apps.push(app);
    return app;
  };

  it('tells later guards and interceptors what was decided', async () => {
    const app = await start();
    expect(await (await app.get('/reports/seen')).json()).toEqual({ remaining: 4 });
    expect(seen).toEqual([4, 4]);
  });

  it('tells exception filters, after a refusal, too', async () => {
    const app = await start();
    await app.statuses(1, '/reports/described');
    const refused = await app.get('/reports/described');
    expect([refused.status, await refused.json()]).toEqual([
      418,
      { status: 429, allowed: false, limits: ['described'] },
    ]);
  });

  it('is undefined where nothing was decided', async () => {
    const app = await start();
    await app.statuses(1, '/reports/free');
    expect(seen).toEqual([undefined, undefined]);
    expect(rateLimitOf({})).toBeUndefined();
  });

  it('tells a middleware behind the one that checked', async () => {
    const found: (number | undefined)[] = [];
    class Later implements NestMiddleware {
      use(request: object, _: object, next: () => void): void {
        found.push(rateLimitOf(request)?.tightest.remaining);
        next();
      }
    }
    const app = await start({
      limits: { limits: [{ ...minute, name: 'early', rate: 9, phase: 'middleware' }] },
      configure: (nest) => {
        nest.use(rateLimitMiddleware(nest));
        nest.use((request: object, response: object, next: () => void) => new Later().use(request, response, next));
      },
    });
    await app.statuses(2, '/reports/free');
    expect(found).toEqual([8, 7]);
  });
});

it('rateLimitOf refuses what is no call', () => {
  expect(() => rateLimitOf('GET /' as never)).toThrow(
    "rateLimitOf: expected the context or the request of a call, received 'GET /'",
  );
});
