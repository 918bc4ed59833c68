import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect } from '@jest/globals';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Injectable,
  type ModuleMetadata,
  Module,
  type Type,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GqlExecutionContext, type GqlContextType, GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  type CheckResult,
  type HeaderFormatter,
  InjectLimiter,
  type KeyResolver,
  type LimitDefinition,
  Limiter,
  MemoryStore,
  RateLimit,
  RateLimitDecision,
  RateLimitExceededException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../lib/index.js';
import { connect } from '../e2e/websocket-clients.js';
import { freshPrefix } from '../support/limits/stores.js';
import { PATIENCE } from '../support/redis/patience.mjs';
import { Rows } from './rows.js';
import { TriedApp } from './tried-app.js';

interface Request {
  ip: string;
  headers: Record<string, string | undefined>;
  query: Record<string, string | undefined>;
  user?: object;
}

const requestOf = (context: ExecutionContext): Request =>
  context.getType<GqlContextType>() === 'graphql'
    ? GqlExecutionContext.create(context).getContext<{ req: Request }>().req
    : context.switchToHttp().getRequest<Request>();
const planOf = (context: ExecutionContext) => ({
  rate: requestOf(context).headers['x-plan'] === 'pro' ? 2 : 1,
});
const isInternal = (context: ExecutionContext) => requestOf(context).headers['x-internal'] === 'yes';
const tenantOf = (context: ExecutionContext) => {
  const tenant = requestOf(context).headers['x-tenant'];
  return tenant && `tenant:${tenant}`;
};
const idsOf = (context: ExecutionContext) => requestOf(context).query['ids']?.split(',') ?? [];
@Controller()
class PlainController {
  @Get()
  all() {}

  @Get('other')
  other() {}
}

/** A controller of which one route alone has the guard. */
@Controller()
class SomeController {
  @Get()
  @UseGuards(RateLimitGuard)
  guarded() {}

  @Get('other')
  other() {}
}

/** A controller whose only route has the limits. */
function limitedBy(...limits: Parameters<typeof RateLimit>): Type {
  @Controller()
  class LimitedController {
    @Get()
    @RateLimit(...limits)
    all() {}
  }
  return LimitedController;
}

const byName: HeaderFormatter = ({ decisions }) =>
  Object.fromEntries(
    decisions.flatMap(({ limit, quota, remaining, resetAfterMs }) => [
      [`X-RateLimit-Limit-${limit}`, String(quota)],
      [`X-RateLimit-Remaining-${limit}`, String(remaining)],
      [`X-RateLimit-Reset-${limit}`, String(Math.ceil(resetAfterMs / 1000))],
    ]),
  );

/** The limits of every route in the rows about decorators. */
const limits: LimitDefinition[] = [
  { name: 'short', algo: 'sliding-log', rate: 2, interval: '1s' },
  { name: 'long', algo: 'sliding-log', rate: 3, interval: '1m' },
];

describe('moving over from @nestjs/throttler', () => {
  const rows = new Rows('docs/migrating-from-throttler.md', 'test/docs/migrating-from-throttler.long.spec.ts');
  let app: TriedApp | undefined;

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  const start = async (metadata: ModuleMetadata, options?: Parameters<typeof TriedApp.start>[1]) =>
    (app = await TriedApp.start({ controllers: [PlainController], ...metadata }, options));
  /** An app with one limit of one route. */
  const startWith = (limit: Parameters<typeof RateLimit>[0], options: RateLimitModuleOptions = {}) =>
    start({ imports: [RateLimitModule.forRoot(options)], controllers: [limitedBy(limit)] });

  rows.tried('ThrottlerModule.forRoot([{ limit: 3, ttl: 60000 }])', async () => {
    const { statuses, clock } = bound(
      await start({
        imports: [
          RateLimitModule.forRoot({ limits: [{ algo: 'sliding-log', rate: 3, interval: '1m', perRoute: true }] }),
        ],
      }),
    );
    expect(await statuses(4)).toEqual([200, 200, 200, 429]);
    expect(await statuses(4, '/other')).toEqual([200, 200, 200, 429]);
    clock.advance('1m');
    expect(await statuses(1)).toEqual([200]);
  });

  rows.tried('{ provide: APP_GUARD, useClass: ThrottlerGuard }', async () => {
    const { statuses } = bound(
      await start({
        imports: [RateLimitModule.forRoot()],
        controllers: [limitedBy({ algo: 'sliding-log', rate: 1, interval: '1m' })],
      }),
    );
    expect(await statuses(2)).toEqual([200, 429]);
  });

  rows.tried('@UseGuards(ThrottlerGuard) on some routes only', async () => {
    const { statuses } = bound(
      await start({ imports: [RateLimitModule.forRoot({ guard: false, limits })], controllers: [SomeController] }),
    );
    expect(await statuses(4, '/other')).toEqual([200, 200, 200, 200]);
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  rows.tried("[{ name: 'short', limit: 3, ttl: 1000 }, { name: 'long', … }]", async () => {
    const { statuses, clock, get } = bound(
      await start({
        imports: [
          RateLimitModule.forRoot({
            limits: [
              { name: 'short', algo: 'sliding-log', rate: 3, interval: '1s', perRoute: true },
              { name: 'long', algo: 'sliding-log', rate: 4, interval: '1m', perRoute: true },
            ],
          }),
        ],
      }),
    );
    expect(await statuses(4)).toEqual([200, 200, 200, 429]);
    expect(await statuses(4, '/other')).toEqual([200, 200, 200, 429]);
    clock.advance('1s');
    expect(await statuses(2)).toEqual([200, 429]);
    expect((await get()).headers.get('ratelimit')).toBe('"short";r=2;t=1, "long";r=0;t=59');
  });

  rows.tried('seconds(10), minutes(1), hours(1)', async () => {
    const { limiters } = await start({ imports: [RateLimitModule.forRoot()] });
    for (const [interval, ms] of Object.entries({ '10s': 10_000, '1m': 60_000, '1h': 3_600_000 })) {
      const limit: LimitDefinition = { name: interval, algo: 'sliding-log', rate: 1, interval };
      expect(await limiters.for(limit).consume('a')).toMatchObject({ resetAfterMs: ms });
    }
  });

  rows.tried('forRootAsync({ inject: [ConfigService], useFactory })', async () => {
    class ConfigService {
      get(name: string): LimitDefinition[] {
        return name === 'limits' ? [{ algo: 'sliding-log', rate: 1, interval: '1m' }] : [];
      }
    }
    @Module({ providers: [ConfigService], exports: [ConfigService] })
    class ConfigModule {}
    const { statuses } = bound(
      await start({
        imports: [
          RateLimitModule.forRootAsync({
            imports: [ConfigModule],
            inject: [ConfigService],
            useFactory: (config: ConfigService) => ({ limits: config.get('limits') }),
          }),
        ],
      }),
    );
    expect(await statuses(2)).toEqual([200, 429]);
  });

  rows.tried('forRootAsync({ useClass }) with createThrottlerOptions()', async () => {
    class RateLimitConfig {
      create(): RateLimitModuleOptions {
        return { limits: [{ algo: 'sliding-log', rate: 1, interval: '1m' }] };
      }
    }
    const { statuses } = bound(await start({ imports: [RateLimitModule.forRootAsync({ useClass: RateLimitConfig })] }));
    expect(await statuses(2)).toEqual([200, 429]);
  });

  rows.tried('forRootAsync(…) with @UseGuards(ThrottlerGuard)', async () => {
    const { statuses } = bound(
      await start({
        imports: [RateLimitModule.forRootAsync({ guard: false, useFactory: () => ({ limits }) })],
        controllers: [SomeController],
      }),
    );
    expect(await statuses(4, '/other')).toEqual([200, 200, 200, 200]);
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  rows.tried('storage: new ThrottlerStorageRedisService(url)', async () => {
    const url = process.env['TEST_REDIS_URL']!;
    const options: RateLimitModuleOptions = { redis: url, prefix: freshPrefix(), timeout: PATIENCE, limits };
    const { statuses, limiters } = bound(
      await start({ imports: [RateLimitModule.forRoot(options)] }, { ownStore: true }),
    );
    expect(await statuses(3)).toEqual([200, 200, 429]);
    expect(await limiters.for(limits[0]!).consume('a')).toMatchObject({ source: 'redis' });
  });

  rows.tried('storage: new MyStorage() that implements ThrottlerStorage', async () => {
    class MyStore extends MemoryStore {
      checks = 0;

      override check(...args: Parameters<MemoryStore['check']>): ReturnType<MemoryStore['check']> {
        this.checks++;
        return super.check(...args);
      }
    }
    const options = { store: new MyStore(), limits };
    const { statuses } = bound(await start({ imports: [RateLimitModule.forRoot(options)] }, { ownStore: true }));
    expect(await statuses(3)).toEqual([200, 200, 429]);
    expect(options.store.checks).toBe(3);
  });

  rows.tried("errorMessage: 'Slow down'", async () => {
    const { get, statuses } = bound(
      await startWith({ algo: 'sliding-log', rate: 1, interval: '1m', message: 'Slow down' }),
    );
    await statuses(1);
    expect(await (await get()).json()).toMatchObject({ statusCode: 429, message: 'Slow down' });
  });

  rows.tried('errorMessage: (context, detail) => …', async () => {
    const { get, statuses } = bound(
      await startWith({
        algo: 'sliding-log',
        rate: 1,
        interval: '1m',
        message: (context, { tightest }) => `Wait ${tightest.retryAfterMs} ms`,
      }),
    );
    await statuses(1);
    expect(await (await get()).json()).toMatchObject({ statusCode: 429, message: 'Wait 60000 ms' });
  });

  rows.tried('setHeaders: false', async () => {
    const { get } = bound(await start({ imports: [RateLimitModule.forRoot({ headers: false, limits })] }));
    for (let request = 0; request < 3; request++) {
      const { status, headers } = await get();
      expect([...headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
      expect(headers.get('retry-after')).toBe(status === 429 ? '1' : null);
    }
  });

  rows.tried('ipv6SubnetPrefix: 56', async () => {
    const fastify = new FastifyAdapter({ trustProxy: true });
    const { statuses } = bound(
      await start({ imports: [RateLimitModule.forRoot({ ipv6Prefix: 56, limits })] }, { fastify }),
    );
    expect(await statuses(2, '/', { 'x-forwarded-for': '2001:db8:0:aa00::1' })).toEqual([200, 200]);
    expect(await statuses(1, '/', { 'x-forwarded-for': '2001:db8:0:aaff::1' })).toEqual([429]);
    expect(await statuses(1, '/', { 'x-forwarded-for': '2001:db8:0:ab00::1' })).toEqual([200]);
  });

  rows.tried('limit: 3, ttl: 60000 (blocks for ttl once exceeded)', async () => {
    const { statuses, clock } = bound(
      await startWith({ algo: 'sliding-log', rate: 3, interval: '1m', blockFor: '1m' }),
    );
    expect(await statuses(1)).toEqual([200]);
    clock.advance('50s');
    expect(await statuses(3)).toEqual([200, 200, 429]);
    clock.advance('10s');
    expect(await statuses(1)).toEqual([429]);
    clock.advance('50s');
    expect(await statuses(1)).toEqual([200]);
  });

  rows.tried('blockDuration: 300000', async () => {
    const { statuses, clock } = bound(
      await startWith({ algo: 'sliding-log', rate: 1, interval: '1m', blockFor: '5m' }),
    );
    expect(await statuses(2)).toEqual([200, 429]);
    clock.advance('4m');
    expect(await statuses(1)).toEqual([429]);
    clock.advance('1m');
    expect(await statuses(1)).toEqual([200]);
    await app?.close();
    const short = bound(await startWith({ algo: 'sliding-log', rate: 2, interval: '1m', blockFor: '2s' }));
    expect(await short.statuses(3)).toEqual([200, 200, 429]);
    short.clock.advance('2300ms');
    expect(await short.statuses(3)).toEqual([200, 200, 429]);
  });

  rows.tried('blockDuration: 0', async () => {
    const { statuses, clock } = bound(await startWith({ algo: 'sliding-log', rate: 1, interval: '1m' }));
    expect(await statuses(2)).toEqual([200, 429]);
    clock.advance('30s');
    expect(await statuses(1)).toEqual([429]);
    clock.advance('30s');
    expect(await statuses(1)).toEqual([200]);
  });

  rows.tried('limit: (context) => …, ttl: (context) => …', async () => {
    @Controller()
    class PlanController {
      @Get()
      @RateLimit((context) => ({ name: 'plan', algo: 'sliding-log', rate: planOf(context).rate, interval: '1m' }))
      all() {}
    }
    const { statuses } = bound(await start({ imports: [RateLimitModule.forRoot()], controllers: [PlanController] }));
    expect(await statuses(2)).toEqual([200, 429]);
    expect(await statuses(2, '/', { 'x-plan': 'pro' })).toEqual([200, 429]);
  });

  rows.tried('skipIf: (context) => …', async () => {
    const { statuses } = bound(
      await startWith({ algo: 'sliding-log', rate: 1, interval: '1m', skip: (context) => isInternal(context) }),
    );
    expect(await statuses(3, '/', { 'x-internal': 'yes' })).toEqual([200, 200, 200]);
    expect(await statuses(2)).toEqual([200, 429]);
  });

  rows.tried('ignoreUserAgents: [/health/]', async () => {
    const { statuses } = bound(
      await startWith({
        algo: 'sliding-log',
        rate: 1,
        interval: '1m',
        skip: (context) => /health/.test(requestOf(context).headers['user-agent'] ?? ''),
      }),
    );
    expect(await statuses(3, '/', { 'user-agent': 'health check' })).toEqual([200, 200, 200]);
    expect(await statuses(2)).toEqual([200, 429]);
  });

  rows.tried("getTracker: (req) => req.headers['x-api-key']", async () => {
    const { statuses } = bound(
      await startWith({ algo: 'sliding-log', rate: 1, interval: '1m', key: 'header:x-api-key' }),
    );
    expect(await statuses(2, '/', { 'x-api-key': 'one' })).toEqual([200, 429]);
    expect(await statuses(2, '/', { 'x-api-key': 'two' })).toEqual([200, 429]);
  });

  rows.tried('getTracker: (req) => req.user.id', async () => {
    @Injectable()
    class LoginGuard {
      canActivate(context: ExecutionContext): boolean {
        const request = requestOf(context);
        request.user = { id: request.headers['x-user'] };
        return true;
      }
    }
    @Controller()
    @UseGuards(LoginGuard)
    class AccountController {
      @Get()
      @RateLimit({ algo: 'sliding-log', rate: 1, interval: '1m', key: 'user' })
      all() {}
    }
    const { statuses } = bound(await start({ imports: [RateLimitModule.forRoot()], controllers: [AccountController] }));
    expect(await statuses(2, '/', { 'x-user': 'ada' })).toEqual([200, 429]);
    expect(await statuses(2, '/', { 'x-user': 'bob' })).toEqual([200, 429]);
  });

  rows.tried('getTracker: (req, context) => …', async () => {
    const { statuses } = bound(
      await startWith({
        algo: 'sliding-log',
        rate: 1,
        interval: '1m',
        key: (context) => tenantOf(context),
      }),
    );
    expect(await statuses(2, '/', { 'x-tenant': 'one' })).toEqual([200, 429]);
    expect(await statuses(2, '/', { 'x-tenant': 'two' })).toEqual([200, 429]);
  });

  rows.tried('generateKey: (context, tracker, name) => …', async () => {
    @Controller('second')
    class SecondController {
      @Get()
      all() {}
    }
    const each: LimitDefinition = {
      algo: 'sliding-log',
      rate: 1,
      interval: '1m',
      key: (context) => tenantOf(context),
      perRoute: true,
    };
    const imports = [RateLimitModule.forRoot({ limits: [each] })];
    const { statuses } = bound(await start({ imports, controllers: [PlainController, SecondController] }));
    for (const path of ['/', '/other', '/second']) {
      expect(await statuses(2, path, { 'x-tenant': 'one' })).toEqual([200, 429]);
      expect(await statuses(2, path, { 'x-tenant': 'two' })).toEqual([200, 429]);
    }
  });

  rows.tried('@Throttle({ default: { limit: 1, ttl: 60000 } })', async () => {
    @Controller()
    class DecoratedController {
      @Get()
      @RateLimit({ name: 'default', algo: 'sliding-log', rate: 1, interval: '1m' })
      all() {}

      @Get('more')
      @RateLimit({ name: 'default', algo: 'sliding-log', rate: 3, interval: '1m' })
      more() {}

      @Get('beside')
      @RateLimit({ algo: 'sliding-log', rate: 3, interval: '1m' })
      beside() {}

      @Get('other')
      other() {}
    }
    const everywhere: LimitDefinition = {
      name: 'default',
      algo: 'sliding-log',
      rate: 2,
      interval: '1m',
      perRoute: true,
    };
    const { statuses } = bound(
      await start({ imports: [RateLimitModule.forRoot({ limits: [everywhere] })], controllers: [DecoratedController] }),
    );
    expect(await statuses(2)).toEqual([200, 429]);
    expect(await statuses(4, '/more')).toEqual([200, 200, 200, 429]);
    expect(await statuses(3, '/beside')).toEqual([200, 200, 429]);
    expect(await statuses(3, '/other')).toEqual([200, 200, 429]);
  });

  rows.tried('@Throttle({ default: { limit: 1, ttl: 60000 } }) on a class', async () => {
    @Controller('few')
    @RateLimit({ name: 'default', algo: 'sliding-log', rate: 1, interval: '1m', perRoute: true })
    class FewController {
      @Get()
      all() {}

      @Get('other')
      other() {}
    }
    const everywhere: LimitDefinition = {
      name: 'default',
      algo: 'sliding-log',
      rate: 2,
      interval: '1m',
      perRoute: true,
    };
    const { statuses } = bound(
      await start({
        imports: [RateLimitModule.forRoot({ limits: [everywhere] })],
        controllers: [FewController, PlainController],
      }),
    );
    expect(await statuses(2, '/few')).toEqual([200, 429]);
    expect(await statuses(2, '/few/other')).toEqual([200, 429]);
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  rows.tried('@Throttle({ short: { limit: 5 } }), changing a named one', async () => {
    @Controller()
    class DecoratedController {
      @Get()
      @RateLimit({ name: 'short', algo: 'sliding-log', rate: 5, interval: '1s' })
      all() {}

      @Get('other')
      other() {}
    }
    const { statuses } = bound(
      await start({
        imports: [RateLimitModule.forRoot({ limits: limits.slice(0, 1) })],
        controllers: [DecoratedController],
      }),
    );
    expect(await statuses(6)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(await statuses(3, '/other')).toEqual([200, 200, 429]);
  });

  rows.tried('@SkipThrottle()', async () => {
    @Controller()
    class SkippingController {
      @Get()
      @SkipRateLimit()
      all() {}

      @Get('other')
      other() {}
    }
    const { statuses } = bound(
      await start({ imports: [RateLimitModule.forRoot({ limits })], controllers: [SkippingController] }),
    );
    expect(await statuses(5)).toEqual([200, 200, 200, 200, 200]);
    expect(await statuses(3, '/other')).toEqual([200, 200, 429]);
  });

  rows.tried('@SkipThrottle({ short: true })', async () => {
    @Controller()
    class SkippingController {
      @Get()
      @SkipRateLimit('short')
      all() {}
    }
    const { statuses } = bound(
      await start({ imports: [RateLimitModule.forRoot({ limits })], controllers: [SkippingController] }),
    );
    expect(await statuses(4)).toEqual([200, 200, 200, 429]);
  });

  rows.tried('@SkipThrottle({ default: false }) in a skipped class', async () => {
    @Controller()
    @SkipRateLimit()
    class SkippedController {
      @Get()
      all() {}

      @Get('other')
      @RateLimit('short')
      other() {}
    }
    const short: LimitDefinition = { algo: 'sliding-log', rate: 2, interval: '1s' };
    const { statuses } = bound(
      await start({
        imports: [RateLimitModule.forRoot({ limits: limits.slice(1), define: { short } })],
        controllers: [SkippedController],
      }),
    );
    expect(await statuses(5)).toEqual([200, 200, 200, 200, 200]);
    expect(await statuses(3, '/other')).toEqual([200, 200, 429]);
  });

  rows.tried('@InjectThrottlerStorage()', async () => {
    @Injectable()
    class Mailer {
      constructor(@InjectLimiter('short') readonly limiter: Limiter) {}
    }
    const short: LimitDefinition = { algo: 'sliding-log', rate: 1, interval: '1s' };
    const { nest } = await start({ imports: [RateLimitModule.forRoot({ define: { short } })], providers: [Mailer] });
    const { limiter } = nest.get(Mailer);
    expect(await limiter.consume('a')).toMatchObject({ allowed: true });
    expect(await limiter.consume('a')).toMatchObject({ allowed: false });
  });

  rows.tried('getTracker() that returns req.ips[0] behind a proxy', async () => {
    const { statuses } = bound(
      await start(
        { imports: [RateLimitModule.forRoot({ limits })] },
        { fastify: new FastifyAdapter({ trustProxy: ['127.0.0.1', '10.0.0.0/8'] }) },
      ),
    );
    expect(await statuses(3, '/', { 'x-forwarded-for': '203.0.113.7' })).toEqual([200, 200, 429]);
    expect(await statuses(1, '/', { 'x-forwarded-for': '203.0.113.8' })).toEqual([200]);
    // What a client sends itself stands before what the proxies add, and is not believed.
    for (const invented of ['192.0.2.1', '192.0.2.2', '10.0.0.1']) {
      expect(await statuses(1, '/', { 'x-forwarded-for': `${invented}, 203.0.113.7, 10.0.0.2` })).toEqual([429]);
    }
  });

  rows.tried('getTracker() that uses injected services', async () => {
    @Injectable()
    class Tenants {
      of(context: ExecutionContext): string {
        return `tenant:${requestOf(context).headers['x-tenant']}`;
      }
    }
    @Injectable()
    class TenantKey implements KeyResolver {
      constructor(private readonly tenants: Tenants) {}

      resolve(context: ExecutionContext): string {
        return this.tenants.of(context);
      }
    }
    const { statuses } = bound(
      await start({
        imports: [RateLimitModule.forRoot()],
        controllers: [limitedBy({ algo: 'sliding-log', rate: 1, interval: '1m', key: TenantKey })],
        providers: [Tenants, TenantKey],
      }),
    );
    expect(await statuses(2, '/', { 'x-tenant': 'one' })).toEqual([200, 429]);
    expect(await statuses(2, '/', { 'x-tenant': 'two' })).toEqual([200, 429]);
  });

  rows.tried('shouldSkip() that asks a service', async () => {
    @Injectable()
    class Accounts {
      async find(context: ExecutionContext): Promise<{ isTrusted: boolean }> {
        await sleep(0);
        return { isTrusted: requestOf(context).headers['x-user'] === 'ada' };
      }
    }
    @Module({ providers: [Accounts], exports: [Accounts] })
    class AccountsModule {}
    const { statuses } = bound(
      await start({
        imports: [
          RateLimitModule.forRootAsync({
            imports: [AccountsModule],
            inject: [Accounts],
            useFactory: (accounts: Accounts) => ({
              limits: [
                {
                  algo: 'sliding-log',
                  rate: 1,
                  interval: '1m',
                  skip: async (context) => (await accounts.find(context)).isTrusted,
                },
              ],
            }),
          }),
        ],
      }),
    );
    expect(await statuses(3, '/', { 'x-user': 'ada' })).toEqual([200, 200, 200]);
    expect(await statuses(2)).toEqual([200, 429]);
  });

  rows.tried('handleRequest() that counts more than one hit', async () => {
    const { statuses, get } = bound(
      await startWith({
        algo: 'sliding-log',
        rate: 5,
        interval: '1m',
        cost: (context) => idsOf(context).length || 1,
      }),
    );
    expect((await get('/?ids=a,b,c')).headers.get('ratelimit')).toContain('r=2');
    expect(await statuses(1, '/?ids=a,b,c')).toEqual([429]);
    expect(await statuses(2)).toEqual([200, 200]);
    expect(await statuses(1)).toEqual([429]);
  });

  rows.tried('handleRequest() that looks at the result', async () => {
    @Controller()
    class TellingController {
      @Get()
      all(@RateLimitDecision() decision: CheckResult) {
        return decision.decisions.map(({ limit, remaining }) => [limit, remaining]);
      }
    }
    const { get } = bound(
      await start({ imports: [RateLimitModule.forRoot({ limits })], controllers: [TellingController] }),
    );
    expect(await (await get()).json()).toEqual([
      ['short', 1],
      ['long', 2],
    ]);
  });

  rows.tried('throwThrottlingException(), or a filter of ThrottlerException', async () => {
    @Catch(RateLimitExceededException)
    class TeapotFilter implements ExceptionFilter {
      catch(exception: RateLimitExceededException, host: ArgumentsHost): void {
        const response = host.switchToHttp().getResponse<{ status(code: number): { json(body: unknown): void } }>();
        response.status(418).json({ wait: exception.result.tightest.retryAfterMs });
      }
    }
    @Controller()
    @UseFilters(TeapotFilter)
    class FilteredController {
      @Get()
      @RateLimit({ algo: 'sliding-log', rate: 1, interval: '1m' })
      all() {}
    }
    const { statuses, get } = bound(
      await start({ imports: [RateLimitModule.forRoot()], controllers: [FilteredController] }),
    );
    expect(await statuses(2)).toEqual([200, 418]);
    expect(await (await get()).json()).toEqual({ wait: 60_000 });
  });

  rows.tried('headerPrefix', async () => {
    const options: RateLimitModuleOptions = {
      headers: ({ tightest }) => ({ 'X-Quota-Left': String(tightest.remaining) }),
      limits,
    };
    const { get } = bound(await start({ imports: [RateLimitModule.forRoot(options)] }));
    expect((await get()).headers.get('x-quota-left')).toBe('1');
    await app?.close();
    const legacy = bound(await start({ imports: [RateLimitModule.forRoot({ headers: 'legacy', limits })] }));
    expect((await legacy.get()).headers.get('x-ratelimit-remaining')).toBe('1');
  });

  rows.tried('X-RateLimit-Limit, -Remaining and -Reset', async () => {
    const { get } = bound(await start({ imports: [RateLimitModule.forRoot({ headers: 'legacy', limits })] }));
    expect([...(await get()).headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
    ]);
  });

  rows.tried('X-RateLimit-Limit-short of a throttler with a name', async () => {
    const { get } = bound(await start({ imports: [RateLimitModule.forRoot({ headers: byName, limits })] }));
    expect(Object.fromEntries((await get()).headers)).toMatchObject({
      'x-ratelimit-limit-short': '2',
      'x-ratelimit-remaining-short': '1',
      'x-ratelimit-reset-short': '1',
      'x-ratelimit-limit-long': '3',
      'x-ratelimit-remaining-long': '2',
      'x-ratelimit-reset-long': '60',
    });
  });

  rows.tried('Retry-After-short of a throttler with a name', async () => {
    const { get, statuses } = bound(await start({ imports: [RateLimitModule.forRoot({ limits })] }));
    await statuses(2);
    const { headers } = await get();
    expect([headers.get('Retry-After'), headers.get('Retry-After-short')]).toEqual(['1', null]);
  });

  rows.tried('{ "statusCode": 429, "message": "ThrottlerException: Too Many Requests" }', async () => {
    const before = { statusCode: 429, message: 'ThrottlerException: Too Many Requests' };
    const asBefore: RateLimitModuleOptions = {
      body: () => ({ statusCode: 429, message: 'ThrottlerException: Too Many Requests' }),
      limits,
    };
    const { get, statuses } = bound(await start({ imports: [RateLimitModule.forRoot(asBefore)] }));
    await statuses(2);
    expect(await (await get()).json()).toEqual(before);
    await app?.close();
    const plain = bound(await start({ imports: [RateLimitModule.forRoot({ limits })] }));
    await plain.statuses(2);
    expect(await (await plain.get()).json()).toMatchObject({ message: 'Too many requests', limits: ['short'] });
  });

  rows.tried('GraphQL: extensions.code is INTERNAL_SERVER_ERROR', async () => {
    @Resolver()
    class BirdsResolver {
      @Query(() => Int)
      birds() {
        return 1;
      }
    }
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
    const each: LimitDefinition[] = [
      {
        name: 'each',
        algo: 'sliding-log',
        rate: 1,
        interval: '1m',
        key: (context) => requestOf(context).headers['user-agent'],
      },
    ];
    const metadata = { imports: [RateLimitModule.forRoot({ limits: each }), graphql], providers: [BirdsResolver] };
    const { nest } = await start(metadata);
    const ask = async (agent: string) => {
      const response = await fetch(`${await nest.getUrl()}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'user-agent': agent },
        body: JSON.stringify({ query: '{ birds }' }),
      });
      return response.json();
    };
    expect(await ask('a')).toEqual({ data: { birds: 1 } });
    expect(await ask('b')).toEqual({ data: { birds: 1 } });
    const extensions = { code: 'RATE_LIMITED', retryAfterMs: 60_000, limits: ['each'] };
    expect(await ask('a')).toMatchObject({ errors: [{ message: 'Too many requests', extensions }] });
  });

  rows.tried('WebSockets: Internal server error', async () => {
    @WebSocketGateway()
    class ChatGateway {
      @SubscribeMessage('say')
      say() {
        return { event: 'said', data: 1 };
      }
    }
    const each: LimitDefinition[] = [{ name: 'each', algo: 'sliding-log', rate: 1, interval: '1m' }];
    const metadata = { imports: [RateLimitModule.forRoot({ limits: each })], providers: [ChatGateway] };
    const { nest } = await start(metadata, { configure: (nest) => nest.useWebSocketAdapter(new WsAdapter(nest)) });
    const client = await connect('ws', await nest.getUrl());
    client.send('say');
    client.send('say');
    expect(await client.next()).toMatchObject({ event: 'said' });
    const data = { statusCode: 429, retryAfterMs: 60_000, limits: ['each'] };
    expect(await client.next()).toMatchObject({ event: 'exception', data });
    client.close();
  });

  rows.end();
});

/** Its methods, to be called alone. */
function bound(app: TriedApp) {
  return {
    clock: app.clock,
    limiters: app.limiters,
    get: app.get.bind(app),
    statuses: app.statuses.bind(app),
  };
}
