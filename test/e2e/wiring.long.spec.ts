import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  Injectable,
  Logger,
  Module,
  type NestInterceptor,
  Scope,
  type Type,
  UnauthorizedException,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, ApplicationConfig, LazyModuleLoader } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { of } from 'rxjs';
import {
  getLimiterToken,
  InjectLimiter,
  type LimitDefinition,
  type Limiter,
  RateLimit,
  RateLimitConfigError,
  RateLimitGuard,
  RateLimitModule,
} from '../../lib/index.js';
import { type Framework, frameworks } from './http-app.js';
import { interceptsAll } from '../support/nest/app-parts.js';

const minute = { algo: 'fixed-window', rate: 2, interval: '1m' } as const;
const login: LimitDefinition = minute;

/** Finds a user for every request, as a session would. */
@Injectable()
class SessionGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ user?: object }>();
    request.user = { id: 'u1' };
    return true;
  }
}

/** Answers all requests by itself. */
@Injectable()
class CacheInterceptor implements NestInterceptor {
  intercept(_: ExecutionContext, _next: CallHandler) {
    return of('cached');
  }
}

/** A module whose file is loaded when this is called, not before. */
function loaded(spec: LimitDefinition | (() => LimitDefinition)): { module: Type; ran: () => number } {
  let ran = 0;

  @Controller()
  class LoadedController {
    @Get()
    @UseGuards(SessionGuard)
    @RateLimit(spec)
    list() {
      ran += 1;
    }
  }
  @Module({ controllers: [LoadedController] })
  class LoadedModule {}
  return { module: LoadedModule, ran: () => ran };
}

const later = <T>(value: () => T) => new Promise<T>((resolve) => void setTimeout(() => resolve(value()), 5));

let close: (() => Promise<void>) | undefined;
afterEach(async () => {
  await close?.();
  close = undefined;
  jest.restoreAllMocks();
});

async function start(
  imports: (DynamicModule | Type | Promise<DynamicModule | Type>)[],
  framework: Framework = 'express',
  configure?: (app: { useGlobalGuards(...guards: CanActivate[]): unknown }) => void,
) {
  const testing = await Test.createTestingModule({ imports: imports as Type[] }).compile();
  testing.useLogger(false);
  const nest =
    framework === 'fastify' ? testing.createNestApplication(new FastifyAdapter()) : testing.createNestApplication();
  close = () => nest.close();
  configure?.(nest);
  await nest.listen(0, '127.0.0.1');
  const url = await nest.getUrl();
  const statuses = async (count: number, path = '/', headers: Record<string, string> = {}) => {
    const seen: number[] = [];
    while (seen.length < count)
      seen.push((await fetch(url + path, { headers: { connection: 'close', ...headers } })).status);
    return seen;
  };
  const intercepts = () => interceptsAll(nest);
  return { nest, statuses, intercepts };
}

describe.each(frameworks)('limits that go on after the guards over %s', (framework) => {
  const byUser: LimitDefinition = { ...minute, key: 'user' };

  it.each<[string, LimitDefinition | (() => LimitDefinition)]>([
    ['by user', byUser],
    ['of a phase', { ...minute, phase: 'authenticated' }],
    ['that a function gives', () => byUser],
  ])('hold in a module that is loaded behind the module: %s', async (_, spec) => {
    const calls: (() => number)[] = [];
    const behind = later(() => {
      const { module, ran } = loaded(spec);
      calls.push(ran);
      return module;
    });
    const { statuses } = await start([RateLimitModule.forRoot(), behind], framework);
    expect(await statuses(5)).toEqual([200, 200, 429, 429, 429]);
    expect(calls[0]?.()).toBe(2);
  });

  it('hold if the module’s definition was spread before', async () => {
    const root = { ...RateLimitModule.forRoot(), global: true };
    expect(await (await start([root, loaded(byUser).module], framework)).statuses(3)).toEqual([200, 200, 429]);
  });

  it.each<[string, () => (DynamicModule | Promise<DynamicModule>)[]]>([
    ['define', () => [RateLimitModule.forRoot({ define: { late: byUser } })]],
    [
      'forRootAsync',
      () => [RateLimitModule.forRootAsync({ useFactory: () => later(() => ({ define: { late: byUser } })) })],
    ],
    ['forFeature', () => [RateLimitModule.forRoot(), RateLimitModule.forFeature({ late: byUser })]],
    [
      'several features, one of them loaded behind',
      () => [
        RateLimitModule.forFeature({ other: login }),
        RateLimitModule.forRoot(),
        later(() => RateLimitModule.forFeature({ late: byUser })),
      ],
    ],
  ])('hold if they are named in %s', async (_, imports) => {
    const { module } = loaded('late' as never);
    expect(await (await start([...imports(), module], framework)).statuses(3)).toEqual([200, 200, 429]);
  });
});

describe('the interceptor', () => {
  it('is not there where no limit needs it, whatever other apps have', async () => {
    const { intercepts } = await start([RateLimitModule.forRoot({ limits: [minute] }), loaded(login).module]);
    expect(intercepts()).toBe(false);
  });

  it.each<[string, DynamicModule]>([
    ['forRoot', RateLimitModule.forRoot({ limits: [{ ...minute, key: 'user' }] })],
    [
      'forRootAsync',
      RateLimitModule.forRootAsync({ useFactory: () => ({ limits: [{ ...minute, count: 'failed' }] }) }),
    ],
    ['defaults', RateLimitModule.forRoot({ limits: [minute], defaults: { key: 'user' } })],
  ])('is there for limits of all routes: %s', async (_, module) => {
    expect((await start([module])).intercepts()).toBe(true);
  });

  it('is not there for forRootAsync without such limits', async () => {
    const module = RateLimitModule.forRootAsync({ useFactory: () => ({ limits: [minute] }) });
    expect((await start([module])).intercepts()).toBe(false);
  });

  it('runs before those of modules that are imported earlier, so no cache answers uncounted requests', async () => {
    @Module({ providers: [{ provide: APP_INTERCEPTOR, useClass: CacheInterceptor }] })
    class CacheModule {}
    const { statuses } = await start([
      CacheModule,
      RateLimitModule.forRoot(),
      loaded({ ...minute, key: 'user' }).module,
    ]);
    expect(await statuses(4)).toEqual([200, 200, 429, 429]);
  });

  it('is asked for by a class that Nest could not know of in time: an error, and no request without its limit', async () => {
    const { nest } = await start([RateLimitModule.forRoot()]);
    class Unknown {
      @RateLimit({ ...minute, key: 'user' })
      run(this: void) {}
    }
    const context = { getClass: () => Unknown, getHandler: () => Unknown.prototype.run };
    expect(() => nest.get(RateLimitGuard).canActivate(context as unknown as ExecutionContext)).toThrow(
      '@RateLimit on Unknown.run: it has limits that are checked after the guards, but Nest found its class too late',
    );
  });
});

describe('limiters by their tokens', () => {
  it('can be got of an app in which no class asks for them', async () => {
    const { nest } = await start([
      RateLimitModule.forRoot({ define: { asked: login } }),
      RateLimitModule.forFeature({ featured: login }),
    ]);
    for (const name of ['asked', 'featured']) {
      const limiter = nest.get<Limiter>(getLimiterToken(name));
      expect(await limiter.consume('user:1')).toMatchObject({ limit: name, remaining: 1 });
    }
    expect(() => nest.get(getLimiterToken('nobody'))).toThrow('nobody');
  });

  it('are injected in files that are loaded behind the module, or though its definition was spread', async () => {
    const classes: Type<{ limiter: Limiter }>[] = [];
    const asking = (name: string) => {
      @Injectable()
      class Asking {
        constructor(@InjectLimiter(name) readonly limiter: Limiter) {}
      }
      @Module({ providers: [Asking] })
      class AskingModule {}
      classes.push(Asking);
      return AskingModule;
    };
    const define = { behind: login, spread: login };
    const root = { ...RateLimitModule.forRoot({ define }), global: true };
    const { nest } = await start([root, asking('spread'), later(() => asking('behind'))]);
    for (const type of classes) expect(await nest.get(type).limiter.consume('user:1')).toMatchObject({ remaining: 1 });
  });

  it('are injected in modules that are loaded lazily, of their own features, too', async () => {
    const { nest } = await start([RateLimitModule.forRoot({ define: { early: login } })]);
    const load = nest.get(LazyModuleLoader);

    @Injectable()
    class Lazy {
      constructor(
        @InjectLimiter('early') readonly early: Limiter,
        @InjectLimiter('lazy') readonly lazy: Limiter,
      ) {}
    }
    @Module({ imports: [RateLimitModule.forFeature({ lazy: login })], providers: [Lazy] })
    class LazyModule {}
    const lazy = (await load.load(() => LazyModule)).get(Lazy);
    expect(await lazy.early.consume('user:1')).toMatchObject({ limit: 'early', remaining: 1 });
    expect(await lazy.lazy.consume('user:1')).toMatchObject({ limit: 'lazy', remaining: 1 });
  });
});

describe('a second forRoot', () => {
  it.each<[string, () => DynamicModule]>([
    ['forRoot', () => RateLimitModule.forRoot({ limits: [minute] })],
    ['forRootAsync', () => RateLimitModule.forRootAsync({ useFactory: () => ({}) })],
  ])('does not start: %s', async (_, second) => {
    @Module({ imports: [second()] })
    class OtherModule {}
    const starting = start([RateLimitModule.forRoot(), OtherModule]);
    await expect(starting).rejects.toThrow(RateLimitConfigError);
    await expect(starting).rejects.toThrow('more than once in this app, and only one import would take effect');
  });

  it('is refused to a module that is loaded lazily', async () => {
    const { nest } = await start([RateLimitModule.forRoot()]);
    await expect(nest.get(LazyModuleLoader).load(() => RateLimitModule.forRoot({ limits: [minute] }))).rejects.toThrow(
      'more than once in this app',
    );
  });

  it('may be one definition that several modules import', async () => {
    const root = RateLimitModule.forRoot({ limits: [minute] });
    @Module({ imports: [root] })
    class OtherModule {}
    expect(await (await start([root, OtherModule, loaded(login).module])).statuses(3)).toEqual([200, 200, 429]);
  });
});

const root = () => RateLimitModule.forRoot({ guard: false });

describe('guard: false', () => {
  it('does not start where routes declare limits that no guard checks, and names them', async () => {
    @Controller()
    @RateLimit(login)
    class ShopController {
      @Get('a')
      list() {}

      @Get('b')
      @UseGuards(RateLimitGuard)
      guarded() {}

      helper() {}
    }
    @Controller()
    class OtherController {
      @Get('c')
      @RateLimit(login)
      other() {}

      @Get('d')
      free() {}
    }
    @Module({ controllers: [ShopController, OtherController] })
    class ShopModule {}
    const starting = start([root(), ShopModule]);
    await expect(starting).rejects.toThrow(RateLimitConfigError);
    await expect(starting).rejects.toThrow(
      "option 'guard' is false, and no RateLimitGuard checks ShopController.list, OtherController.other. " +
        "Add @UseGuards(RateLimitGuard) there or set 'guard' to true; set it to 'custom' if a guard of your own calls it",
    );
  });

  it.each<[string, () => DynamicModule, Type?]>([
    ['the app binds it for all routes', root, boundModule({ provide: APP_GUARD, useExisting: RateLimitGuard })],
    [
      'of a class that extends it',
      root,
      boundModule({ provide: APP_GUARD, useClass: class extends RateLimitGuard {} }),
    ],
  ])('starts where %s', async (_, module, binding) => {
    const { statuses } = await start([module(), binding!, loaded(login).module]);
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  it.each<[string, CanActivate]>([
    ['an object', { canActivate: () => true }],
    ['an object without a class', Object.assign(Object.create(null) as CanActivate, { canActivate: () => true })],
  ])('starts where a test puts %s in its place', async (_, value) => {
    const binding = boundModule({ provide: APP_GUARD, useExisting: RateLimitGuard });
    for (const module of [RateLimitModule.forRoot(), root()]) {
      const testing = await Test.createTestingModule({ imports: [module, binding, loaded(login).module] })
        .overrideProvider(RateLimitGuard)
        .useValue(value)
        .compile();
      testing.useLogger(false);
      await testing.init();
      await testing.close();
    }
  });

  it('starts where main.ts binds it', async () => {
    const { statuses } = await start([root(), loaded(login).module], 'express', (app) =>
      app.useGlobalGuards((app as unknown as { get(type: Type): RateLimitGuard }).get(RateLimitGuard)),
    );
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  it("lets 'custom' rest them on purpose", async () => {
    const { statuses } = await start([RateLimitModule.forRoot({ guard: 'custom' }), loaded(login).module]);
    expect(await statuses(3)).toEqual([200, 200, 200]);
  });

  it('does not start with limits of the module and no guard at all, but with one that a gateway binds', async () => {
    const limits = { guard: false, limits: [minute] };
    await expect(start([RateLimitModule.forRoot(limits)])).rejects.toThrow(
      "no RateLimitGuard checks the module's 'limits'",
    );
    @Injectable()
    @UseGuards(RateLimitGuard)
    class ChatGateway {}
    await expect(start([RateLimitModule.forRoot(limits), boundModule(ChatGateway)])).resolves.toBeDefined();
    await close?.();
    const early = RateLimitModule.forRoot({ guard: false, limits: [{ ...minute, phase: 'middleware' }] });
    await expect(start([early])).resolves.toBeDefined();
  });

  it('does not take the guard that follows server-sent events for one that checks', async () => {
    @Controller()
    class EventsController {
      @Get()
      @RateLimit(login)
      events() {}
    }
    Reflect.defineMetadata(
      '__sse__',
      true,
      (EventsController.prototype as unknown as Record<string, object>)['events']!,
    );
    @Module({ controllers: [EventsController] })
    class EventsModule {}
    await expect(start([root(), EventsModule])).rejects.toThrow('EventsController.events');
  });
});

/** Starts without a server, under a Nest that knows what Nest 11 does. */
async function startUnder11(gateway: Type) {
  const known = Object.getOwnPropertyDescriptor(ApplicationConfig.prototype, 'getRouteConflictPolicy')!;
  Reflect.deleteProperty(ApplicationConfig.prototype, 'getRouteConflictPolicy');
  try {
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot()],
      providers: [gateway],
    }).compile();
    close = () => testing.close();
    await testing.init();
  } finally {
    Object.defineProperty(ApplicationConfig.prototype, 'getRouteConflictPolicy', known);
  }
}

describe('gateways before Nest 12', () => {
  @WebSocketGateway()
  class ChatGateway {
    @SubscribeMessage('say')
    @RateLimit(login)
    say() {}
  }
  @WebSocketGateway()
  @UseGuards(RateLimitGuard)
  class GuardedGateway {
    @SubscribeMessage('say')
    @RateLimit(login)
    say() {}
  }

  it('do not start with limits that no guard of their own checks', async () => {
    await expect(startUnder11(ChatGateway)).rejects.toThrow(
      "Nest's global guards do not reach gateways before Nest 12, so nothing checks ChatGateway.say. Add @UseGuards(RateLimitGuard)",
    );
  });

  it('start with one', async () => {
    await expect(startUnder11(GuardedGateway)).resolves.toBe(undefined);
  });
});

function boundModule(...providers: NonNullable<DynamicModule['providers']>): Type {
  @Module({ providers })
  class BoundModule {}
  return BoundModule;
}

/** Lets requests pass that bring the token. */
@Injectable()
class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    if (headers['x-token'] !== 'right') throw new UnauthorizedException();
    return true;
  }
}

/** A guard that Nest makes for each request. */
@Injectable({ scope: Scope.REQUEST })
class TokenGuardOfRequest extends TokenGuard {}

@Controller()
class OpenController {
  @Get()
  read() {}
}
@Module({ controllers: [OpenController] })
class OpenModule {}

/** A module that imports others and has providers of its own. */
function importing(imports: (Type | DynamicModule)[], ...providers: NonNullable<DynamicModule['providers']>): Type {
  @Module({ imports: [...imports, OpenModule], providers })
  class RootModule {}
  return RootModule;
}

type Counted = 'all' | 'failed';

const limits = (count: Counted, guard = true) => RateLimitModule.forRoot({ limits: [{ ...minute, count }], guard });
const setUpLater = (count: Counted) =>
  RateLimitModule.forRootAsync({ useFactory: () => later(() => ({ limits: [{ ...minute, count }] })) });

describe.each(frameworks)('global guards beside ours, over %s', (framework) => {
  const right = { 'x-token': 'right' };
  const auth = { provide: APP_GUARD, useClass: TokenGuard };
  const own = { provide: APP_GUARD, useExisting: RateLimitGuard };

  it.each<[string, (count: Counted) => (Type | DynamicModule)[], Parameters<typeof start>[2]?]>([
    ['a module that is imported before it', (count) => [boundModule(auth), limits(count), OpenModule]],
    ['one that is imported before it is set up later', (count) => [boundModule(auth), setUpLater(count), OpenModule]],
    ['a module that is imported after it', (count) => [limits(count), boundModule(auth), OpenModule]],
    ['the module that imports it', (count) => [importing([limits(count)], auth)]],
    ['the module that imports it through another one', (count) => [importing([importing([limits(count)])], auth)]],
    ['each request', (count) => [boundModule({ ...auth, useClass: TokenGuardOfRequest }), limits(count), OpenModule]],
    [
      'a factory',
      (count) => [boundModule({ provide: APP_GUARD, useFactory: () => new TokenGuard() }), limits(count), OpenModule],
    ],
    ['useGlobalGuards', (count) => [limits(count), OpenModule], (app) => app.useGlobalGuards(new TokenGuard())],
    ['an app that lists ours before its own', (count) => [importing([limits(count, false)], own, auth)]],
    ['an app that lists ours once more', (count) => [importing([limits(count)], auth, own)]],
  ])('of %s: what they refuse is counted', async (...[, imports, configure]) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const all = await start(imports('all'), framework, configure);
    expect(await all.statuses(4)).toEqual([401, 401, 429, 429]);
    expect(await all.statuses(1, '/', right)).toEqual([429]);
    await close?.();
    const failed = await start(imports('failed'), framework, configure);
    expect(await failed.statuses(3, '/', right)).toEqual([200, 200, 200]);
    expect(await failed.statuses(3)).toEqual([401, 401, 429]);
    // So nobody learns from the answer whether the last guess was right.
    expect(await failed.statuses(1, '/', right)).toEqual([429]);
    expect(warn.mock.calls).toEqual([]);
  });

  it('refuse uncounted where the app binds ours after them', async () => {
    const { statuses } = await start([importing([limits('all', false)], auth, own)], framework);
    expect(await statuses(4)).toEqual([401, 401, 401, 401]);
  });
});

it('a guard of a test in place of ours runs before the others, too', async () => {
  const asked: string[] = [];
  const auth = { canActivate: () => asked.push('auth') > 0 };
  const testing = await Test.createTestingModule({
    imports: [boundModule({ provide: APP_GUARD, useValue: auth }), RateLimitModule.forRoot(), OpenModule],
  })
    .overrideProvider(RateLimitGuard)
    .useValue({ canActivate: () => asked.push('ours') > 0 })
    .compile();
  const nest = testing.createNestApplication({ logger: false });
  close = () => nest.close();
  await nest.listen(0, '127.0.0.1');
  expect((await fetch(await nest.getUrl(), { headers: { connection: 'close' } })).status).toBe(200);
  expect(asked).toEqual(['ours', 'auth']);
});
