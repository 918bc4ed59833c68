import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  Get,
  Injectable,
  mixin,
  Module,
  type ModuleMetadata,
  Post,
  SetMetadata,
  type Type,
  Version,
  VersioningType,
} from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { Int, Mutation, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { EventPattern, MessagePattern, Transport } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../lib/index.js';
import { type AppOptions, frameworks, HttpApp, startUp } from './http-app.js';
import { leftOf } from '../support/http/responses.js';
import { namespacesOf } from '../support/nest/app-parts.js';

function limit(name: string, rate: number, more: Partial<LimitDefinition> = {}): LimitDefinition {
  return { name, algo: 'fixed-window', rate, interval: '1m', ...more } as LimitDefinition;
}

/** The class as a minifier or another build would call it. */
function called<T extends object>(name: string, type: T): T {
  return Object.defineProperty(type, 'name', { value: name });
}

const counted = { algo: 'fixed-window', rate: 5, interval: '1m' } as const;

@RateLimit(limit('base', 10), limit('hourly', 20))
abstract class BaseController {
  @Get('inherited')
  @RateLimit(limit('method', 10))
  inherited() {}

  @Get('overridden')
  @RateLimit(limit('method', 10))
  overridden() {}
}

function withLimit(name: string, path: string) {
  @RateLimit(limit(name, 10))
  @Controller(path)
  class MixedController extends BaseController {}
  return mixin(MixedController);
}

function orders(name: string, path: string | string[] = 'orders'): Type {
  @Controller(path)
  @RateLimit(limit('class', 10))
  class OrdersController {
    @Get()
    @RateLimit(limit('route', 10))
    list() {}
  }
  return called(name, OrdersController);
}

function part(path: string, name: string) {
  @Controller()
  @RateLimit(limit('class', 10))
  class PartController {
    @Get(path)
    list() {}

    @Post(path)
    create() {}
  }
  return called(name, PartController);
}

function inModule(path: string) {
  @Module({ controllers: [orders('OrdersController')] })
  class PartModule {}
  return [PartModule, RouterModule.register([{ path, module: PartModule }])];
}

function named(path: string) {
  @Controller(path)
  @RateLimit.namespace('orders')
  @RateLimit(limit('class', 10))
  class OrdersController {
    @Get()
    @RateLimit(limit('route', 10))
    list() {}

    @Get('named')
    @RateLimit.namespace('the list')
    @RateLimit(limit('route', 10))
    named() {}
  }
  return OrdersController;
}

function inModules(...paths: string[]): Type[] {
  return paths.flatMap(inModule) as Type[];
}

const byVersion: AppOptions['configure'] = (app) => app.enableVersioning({ type: VersioningType.URI });

/** The scopes of all limits of a class, in one start of an app. */
async function scopesOf(metadata: ModuleMetadata, type: Type): Promise<Record<string, string[]>> {
  const testing = await Test.createTestingModule({ ...metadata, imports: [RateLimitModule.forRoot()] }).compile();
  await testing.init();
  const prototype = type.prototype as Record<string, object>;
  const methods = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor');
  const scopes = methods.map((name) => [name, namespacesOf(testing, type, prototype[name]!)]);
  await testing.close();
  return Object.fromEntries(scopes) as Record<string, string[]>;
}

describe.each(frameworks)('what adds up over %s', (framework) => {
  let app: HttpApp | undefined;
  const start = async (options: AppOptions) => (app = await HttpApp.start(framework, options));
  const told = async (path: string) => leftOf(await app!.get(path));

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  @Controller('plain')
  class PlainController extends BaseController {}

  @Controller('more')
  @RateLimit(limit('own', 10))
  class MoreController extends BaseController {
    @Get('overridden')
    @RateLimit(limit('other', 10))
    override overridden() {}
  }

  @Controller('skips')
  @SkipRateLimit('hourly')
  class SkippingController extends BaseController {}

  @Controller('nearer')
  @RateLimit(limit('hourly', 5))
  class NearerController extends MoreController {}

  @Controller('none')
  @SkipRateLimit()
  class NoneController extends BaseController {}

  const controllers = [PlainController, MoreController, SkippingController, NearerController, NoneController];
  const options = { controllers, limits: { limits: [limit('module', 10)] } };

  it('keeps the limits of the classes that a controller extends', async () => {
    await start(options);
    expect(await told('/plain/inherited')).toEqual({ module: 9, base: 9, hourly: 19, method: 9 });
    expect(await told('/more/inherited')).toEqual({ module: 8, base: 9, hourly: 19, own: 9, method: 9 });
  });

  it('skips only the limits that a derived class names', async () => {
    await start(options);
    expect(await told('/skips/inherited')).toEqual({ module: 9, base: 9, method: 9 });
    expect(await told('/none/inherited')).toEqual({ method: 9 });
  });

  it('lets the nearest of one name hold, over several classes', async () => {
    await start(options);
    expect(await told('/nearer/inherited')).toEqual({ module: 9, base: 9, hourly: 4, own: 9, method: 9 });
  });

  it('lets a method that overrides another declare its own, as Nest has it with guards', async () => {
    await start(options);
    expect(await told('/more/overridden')).toEqual({ module: 9, base: 9, hourly: 19, own: 9, other: 9 });
  });

  it('counts each derived class for itself', async () => {
    await start(options);
    await told('/plain/inherited');
    expect(await told('/plain/inherited')).toMatchObject({ base: 8, method: 8 });
    expect(await told('/more/inherited')).toMatchObject({ base: 9, method: 9 });
  });

  it('adds up in mixins', async () => {
    await start({ controllers: [withLimit('one', 'one'), withLimit('two', 'two')], limits: {} });
    expect(await told('/one/inherited')).toEqual({ base: 9, hourly: 19, one: 9, method: 9 });
    expect(await told('/two/inherited')).toEqual({ base: 9, hourly: 19, two: 9, method: 9 });
  });
});

describe.each(frameworks)('what tells counters apart over %s', (framework) => {
  let store: MemoryStore;
  beforeEach(() => {
    store = new MemoryStore();
  });
  afterEach(() => store.close());

  /** One start of an app whose store outlives it; gives what is left of each limit after a request to each path. */
  async function run(options: AppOptions, ...paths: string[]): Promise<Record<string, number>[]> {
    const app = await HttpApp.start(framework, { ...options, limits: { ...options.limits, store } });
    try {
      const results: Record<string, number>[] = [];
      for (const path of paths) {
        const response = await app.get(path);
        expect(response.status).toBe(200);
        results.push(leftOf(response));
      }
      return results;
    } finally {
      await app.close();
    }
  }

  let build = 0;
  it.each<[string, () => Type]>([
    ['mixin()', () => mixin(orders('OrdersController'))],
    ['no name', () => orders('')],
    ['a minifier’s name, another in each build', () => orders(String.fromCodePoint(97 + (build += 1)))],
    ['a name that only one build gives', () => orders(`OrdersController${(build += 1)}`)],
  ])('counts on after another start: a class of %s', async (_, make) => {
    for (const remaining of [9, 8, 7]) {
      expect(await run({ controllers: [make()] }, '/orders')).toEqual([{ class: remaining, route: remaining }]);
    }
  });

  it.each<[string, () => [Type, Type]]>([
    ['mixin()', () => [mixin(orders('A', 'v1/users')), mixin(orders('A', 'v2/users'))]],
    ['no name', () => [orders('', 'v1/users'), orders('', 'v2/users')]],
    ['one name', () => [orders('UsersController', 'v1/users'), orders('UsersController', 'v2/users')]],
  ])('has separate counters for two classes of %s, in whatever order', async (_, make) => {
    const paths = ['/v1/users', '/v1/users', '/v2/users'] as const;
    const first = await run({ controllers: make() }, ...paths);
    expect(first.map((each) => [each['class'], each['route']])).toEqual([
      [9, 9],
      [8, 8],
      [9, 9],
    ]);
    const [second] = await run({ controllers: make().toReversed() }, '/v2/users');
    expect(second).toEqual({ class: 8, route: 8 });
  });

  it('does not let a class take over the counters of another that had its name in an earlier build', async () => {
    await run({ controllers: [orders('a', 'orders'), orders('b', 'users')] }, '/orders', '/orders', '/users');
    const swapped = [orders('b', 'orders'), orders('a', 'users')];
    expect(await run({ controllers: swapped }, '/orders', '/users')).toEqual([
      { class: 7, route: 7 },
      { class: 8, route: 8 },
    ]);
  });

  it('tells classes of one path apart by their other routes', async () => {
    const [a, b] = await run({ controllers: [part('a', 'x'), part('b', 'x')] }, '/a', '/b');
    expect([a, b]).toEqual([{ class: 9 }, { class: 9 }]);
    expect(await run({ controllers: [part('b', 'y'), part('a', 'z')] }, '/b')).toEqual([{ class: 8 }]);
  });

  it('tells paths of modules apart', async () => {
    const paths = ['/v1/orders', '/v1/orders', '/v2/orders'];
    const all = await run({ imports: inModules('v1', 'v2') }, ...paths);
    expect(all.map((each) => each['class'])).toEqual([9, 8, 9]);
    expect(all.map((each) => each['route'])).toEqual([9, 8, 9]);
    expect(await run({ imports: inModules('v1', 'v2') }, '/v2/orders')).toEqual([{ class: 8, route: 8 }]);
  });

  it('tells versions apart', async () => {
    @Controller({ path: 'orders', version: '1' })
    @RateLimit(limit('class', 10))
    class FirstController {
      @Get()
      @RateLimit(limit('route', 10))
      list() {}

      @Get()
      @Version('3')
      @RateLimit(limit('route', 10))
      third() {}
    }
    @Controller({ path: 'orders', version: ['2', '4'] })
    @RateLimit(limit('class', 10))
    class SecondController {
      @Get()
      @RateLimit(limit('route', 10))
      list() {}
    }
    const types = [called('C', FirstController), called('C', SecondController)];
    expect(
      await run({ controllers: types, configure: byVersion }, '/v1/orders', '/v3/orders', '/v2/orders', '/v4/orders'),
    ).toEqual([
      { class: 9, route: 9 },
      { class: 8, route: 9 },
      { class: 9, route: 9 },
      { class: 8, route: 8 },
    ]);
  });

  it('takes an explicit scope, which outlasts another path', async () => {
    expect(await run({ controllers: [named('a')] }, '/a', '/a/named')).toEqual([
      { class: 9, route: 9 },
      { class: 8, route: 9 },
    ]);
    expect(await run({ controllers: [named('b')] }, '/b', '/b/named')).toEqual([
      { class: 7, route: 8 },
      { class: 6, route: 8 },
    ]);
  });

  it('counts each route for itself where a limit of the module says so', async () => {
    @Controller('many')
    class ManyController {
      @Get(':id')
      one() {}

      @Get(':id/more')
      more() {}
    }
    const limits = { limits: [limit('each', 5, { perRoute: true }), limit('all', 10)] };
    const paths = ['/many/1', '/many/2', '/many/1/more'];
    expect(await run({ controllers: [ManyController], limits }, ...paths)).toEqual([
      { each: 4, all: 9 },
      { each: 3, all: 8 },
      { each: 4, all: 7 },
    ]);
    // Another start, under another class name.
    expect(await run({ controllers: [called('b', ManyController)], limits }, '/many/3')).toEqual([{ each: 2, all: 6 }]);
  });

  it('counts each route for itself where a limit of a class says so, also of one that it extends', async () => {
    @RateLimit(limit('each', 5, { perRoute: true }), limit('all', 10))
    abstract class ManyController {
      @Get(':id')
      one() {}

      @Get(':id/more')
      @RateLimit(limit('own', 7))
      more() {}
    }
    const many = (name: string, path: string): Type => {
      @Controller(path)
      class OfPathController extends ManyController {}
      return called(name, OfPathController);
    };
    const paths = ['/many/1', '/many/2', '/many/1/more', '/others/1'];
    const controllers = [many('Many', 'many'), many('Others', 'others')];
    expect(await run({ controllers }, ...paths)).toEqual([
      { each: 4, all: 9 },
      { each: 3, all: 8 },
      { each: 4, all: 7, own: 6 },
      { each: 4, all: 9 },
    ]);
    // Another start, under another class name.
    expect(await run({ controllers: [many('b', 'many')] }, '/many/3')).toEqual([{ each: 2, all: 6 }]);
  });
});

describe('a limit of a class that counts each route for itself', () => {
  it('refuses at its own rate, and counts apart from a limit of that name on a route', async () => {
    @Controller()
    @RateLimit(limit('each', 2, { perRoute: true }))
    class SmallController {
      @Get('a')
      a() {}

      @Get('b')
      b() {}

      @Get('c')
      @RateLimit(limit('each', 1, { perRoute: true }))
      c() {}
    }
    const app = await HttpApp.start('fastify', { controllers: [SmallController] });
    try {
      expect(await app.statuses(3, '/a')).toEqual([200, 200, 429]);
      expect(await app.statuses(3, '/b')).toEqual([200, 200, 429]);
      expect(await app.statuses(2, '/c')).toEqual([200, 429]);
    } finally {
      await app.close();
    }
  });

  it('is refused where no route is known', async () => {
    const refusal = "perRoute: expected false, but in the module's 'limits', on a class and on a route, received true";
    @Controller()
    @RateLimit(limit('each', 2, { perRoute: true }))
    class ManyRoutesController {
      @Get()
      one() {}
    }
    const app = await HttpApp.start('fastify', { controllers: [ManyRoutesController] });
    try {
      const limiters = app.nest.get(LimiterService);
      expect(() => limiters.for(limit('each', 2, { perRoute: true }))).toThrow(refusal);
    } finally {
      await app.close();
    }
  });
});

it('changes the rate of all routes that count for themselves', async () => {
  @Controller()
  class ManyController {
    @Get('one')
    one() {}

    @Get('two')
    two() {}
  }
  const app = await HttpApp.start('express', {
    controllers: [ManyController],
    limits: { limits: [limit('each', 5, { perRoute: true })] },
  });
  try {
    expect([leftOf(await app.get('/one')), leftOf(await app.get('/two'))]).toEqual([{ each: 4 }, { each: 4 }]);
    await app.nest.get(LimiterService).setRate('each', { rate: 2 });
    expect([leftOf(await app.get('/one')), leftOf(await app.get('/two'))]).toEqual([{ each: 0 }, { each: 0 }]);
    expect((await app.get('/two')).status).toBe(429);
    const limiters = app.nest.get(LimiterService);
    await limiters.setRate('each', { rate: 9 }, { key: 'ip:*' });
    const [one, two] = [leftOf(await app.get('/one')), leftOf(await app.get('/two'))];
    expect(one['each']).toBeGreaterThan(2);
    expect(two).toEqual(one);
    await limiters.setMode('each', 'off', { key: 'ip:*' });
    expect(leftOf(await app.get('/two'))).toEqual({});
  } finally {
    await app.close();
  }
});

it('counts each route by itself in a class without a namespace, beside other methods', async () => {
  @Controller()
  class HelpedController {
    @Get('one')
    one() {}

    @SetMetadata('of', 'another package')
    helper() {}

    other() {}
  }
  @WebSocketGateway()
  class SayGateway {
    @SubscribeMessage('say')
    say() {}
  }
  const providers = [called('a', SayGateway), called('b', class extends SayGateway {})];
  WebSocketGateway()(providers[1]!);
  const limits = [limit('each', 5, { perRoute: true })];
  // Two gateways of one message and method are nothing to tell apart by.
  await expect(startUp({ limits }, [mixin(HelpedController)], { providers })).rejects.toThrow(
    '@RateLimit on a.say: its counters have no name that stays the same across builds',
  );
  await expect(startUp({ limits }, [mixin(HelpedController)], { providers: [SayGateway] })).resolves.toBe(undefined);
});

class TasksService {
  @SetMetadata('of', 'another package')
  run() {}
}

it('counts routes for themselves, whatever other packages decorate in services of one name', async () => {
  const imports = [
    { module: class OtherModule {}, providers: [called('TasksService', class extends TasksService {})] },
  ];
  const limits = [limit('each', 5, { perRoute: true })];
  await expect(startUp({ limits }, [], { providers: [TasksService], imports })).resolves.toBe(undefined);
});

describe('other handlers', () => {
  it('are known by namespace and message: gateways', async () => {
    @WebSocketGateway({ namespace: 'chat' })
    @RateLimit({ ...counted, name: 'class' })
    class ChatGateway {
      @SubscribeMessage('say')
      @RateLimit(counted)
      say() {}
    }
    expect(await scopesOf({ providers: [ChatGateway] }, called('a', ChatGateway))).toEqual({
      say: ['ws chat', 'ws chat say'],
    });
  });

  it('are known by their patterns: microservices', async () => {
    @Controller()
    class SumController {
      @MessagePattern({ cmd: 'sum' }, Transport.TCP)
      @RateLimit(counted)
      sum() {}

      @EventPattern('ordered')
      @RateLimit(counted)
      ordered(_data: unknown) {}
    }
    @Controller()
    class MailController {
      @EventPattern('ordered')
      @RateLimit(counted)
      mail(_data: unknown) {}
    }
    const controllers = [called('a', SumController), called('b', MailController)];
    expect(await scopesOf({ controllers }, SumController)).toEqual({
      sum: ['/ {"cmd":"sum"} 0'],
      ordered: ['/ ordered ordered'],
    });
    expect(await scopesOf({ controllers: controllers.toReversed() }, MailController)).toEqual({
      mail: ['/ ordered mail'],
    });
  });

  it('are known by their fields: resolvers', async () => {
    @Resolver('Book')
    class BookResolver {
      @Query(() => Int)
      @RateLimit(counted)
      books() {
        return 0;
      }

      @Mutation(() => Int, { name: 'lend' })
      @RateLimit(counted)
      lendBook() {
        return 0;
      }

      @ResolveField('author', () => Int)
      @RateLimit(counted)
      authorOf() {
        return 0;
      }
    }
    expect(await scopesOf({ providers: [BookResolver] }, called('a', BookResolver))).toEqual({
      books: ['graphql Book Query books'],
      lendBook: ['graphql Book Mutation lend'],
      authorOf: ['graphql Book author'],
    });
  });

  it('of an unknown transport need a class name or a namespace', async () => {
    class BotUpdate {
      @RateLimit(counted)
      start() {}
    }
    expect(await scopesOf({ providers: [BotUpdate] }, BotUpdate)).toEqual({ start: ['BotUpdate.start'] });

    @Injectable()
    @RateLimit.namespace('bot')
    class ScopedUpdate {
      @RateLimit(counted)
      start() {}
    }
    const scoped = mixin(ScopedUpdate);
    expect(await scopesOf({ providers: [scoped] }, scoped)).toEqual({ start: ['bot.start'] });
  });

  it.each<[string, () => Type[], string]>([
    [
      'mixin()',
      () => {
        class BotUpdate {
          // As packages mark the methods that they call.
          @SetMetadata('a-package:command', 'start')
          @RateLimit(counted)
          start() {}
        }
        return [mixin(BotUpdate)];
      },
      'no name that stays the same across builds',
    ],
    [
      'one scope for two',
      () =>
        ['a', 'b'].map((name) => {
          @RateLimit.namespace('same')
          class BotUpdate {
            @RateLimit(counted)
            start() {}
          }
          return called(name, BotUpdate);
        }),
      "another place already has the namespace 'same.start'",
    ],
    [
      'a wrong scope',
      () => {
        @RateLimit.namespace('')
        class BotUpdate {
          @RateLimit(counted)
          start() {}
        }
        return [BotUpdate];
      },
      "@RateLimit.namespace on BotUpdate.start: expected 1 to 128 printable ASCII characters that do not start with '@', received ''",
    ],
    [
      "the scope of the module's limits",
      () => {
        @RateLimit.namespace('@module')
        class BotUpdate {
          @RateLimit(counted)
          start() {}
        }
        return [BotUpdate];
      },
      "expected 1 to 128 printable ASCII characters that do not start with '@', received '@module'",
    ],
  ])('do not start without: %s', async (_, make, message) => {
    const starting = startUp({}, [], { providers: make() });
    await expect(starting).rejects.toThrow(RateLimitConfigError);
    await expect(starting).rejects.toThrow(message);
  });

  it.each<[string, RateLimitModuleOptions, string]>([
    [
      'define',
      { define: { login: { ...counted, perRoute: true } } },
      "define.login.perRoute: expected false, but in the module's 'limits', on a class and on a route, received true",
    ],
    [
      'a middleware',
      { limits: [{ ...counted, perRoute: true, phase: 'middleware' }] },
      "limits[0].perRoute: expected false in phase 'middleware', received true",
    ],
  ])('refuses perRoute in %s', async (_, options, message) => {
    await expect(startUp(options)).rejects.toThrow(message);
  });
});

describe('patterns of any kind have a namespace', () => {
  const circle: { self?: unknown } = {};
  circle.self = circle;

  it.each<[string, unknown, string]>([
    ['a symbol', Symbol.for('say'), 'say'],
    ['a symbol without a description', Symbol(), 'Symbol()'],
    ['an object that holds a symbol', { say: Symbol('hello') }, '{"say":"hello"}'],
    ['a large number', 2n ** 64n, '18446744073709551616'],
    ['a regular expression', /^say/, '/^say/'],
    ['a function', leftOf, 'leftOf'],
    ['a circle', circle, '<ref *1> { self: [Circular *1] }'],
  ])('%s', async (_, pattern, shown) => {
    @Controller('chat')
    class ChatController {
      @MessagePattern(pattern as string, Symbol.for('a transport') as unknown as Transport)
      @RateLimit(counted)
      one() {}

      @MessagePattern([pattern, 'b'] as string[])
      @RateLimit(counted)
      several() {}
    }
    expect(await scopesOf({ controllers: [ChatController] }, ChatController)).toEqual({
      one: [`/chat ${shown} a transport`],
      several: [`/chat ${shown},b`],
    });
  });
});
