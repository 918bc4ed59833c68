import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Module, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  getLimiterToken,
  InjectLimiter,
  type LimitDefinition,
  Limiter,
  LimiterService,
  type LimitSpec,
  MemoryStore,
  RateLimit,
  RateLimitConfigError,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../../lib/index.js';
import { startUp } from './http-app.js';

const login: LimitDefinition = { algo: 'fixed-window', rate: 3, interval: '1m' };

async function messageOf(starting: Promise<unknown>): Promise<string> {
  const error = await starting.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RateLimitConfigError);
  return (error as Error).message;
}

function controllerWith(...specs: [LimitSpec, ...LimitSpec[]]): Type {
  @Controller('reports')
  class ReportsController {
    @Get()
    @RateLimit(...specs)
    list() {}
  }
  return ReportsController;
}

const wrong = (more: object): LimitDefinition => ({ ...login, ...more });

describe('the module itself instead of forRoot', () => {
  @Module({ imports: [RateLimitModule] })
  class MailsModule {}

  it.each([
    ['alone', []],
    ['beside forRoot', [RateLimitModule.forRoot()]],
  ])('is told by its name, %s', async (_, modules) => {
    const message = await messageOf(Test.createTestingModule({ imports: [MailsModule, ...modules] }).compile());
    expect(message).toMatch(
      /^RateLimitModule: got undefined, wants an object of options. Import it once, by forRoot\(\)/,
    );
  });
});

/** Puts another function in place of a method, as careless decorators do. */
const replacing: MethodDecorator = (_target, _key, descriptor: PropertyDescriptor) => {
  const replaced = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return replaced.apply(this, args);
  };
};

const lostBy = (name: string) => `@RateLimit on ${name}.list: a decorator above it put another function in place of`;

describe('decorators that put another function in place of a method', () => {
  class Lost {
    @Get()
    @replacing
    @RateLimit(login)
    list(): unknown {
      return undefined;
    }
  }
  it('are an error where the limits are lost by them, also in classes that extend it', async () => {
    @Controller()
    class DerivedController extends Lost {}
    Controller('lost')(Lost);
    expect(await messageOf(startUp({}, [Lost]))).toContain(lostBy('Lost'));
    expect(await messageOf(startUp({}, [DerivedController]))).toContain(lostBy('DerivedController'));
  });

  it('are an error where others stand above them', async () => {
    @Controller()
    class HalfController {
      @Get()
      @SkipRateLimit()
      @replacing
      @RateLimit(login)
      list() {}
    }
    expect(await messageOf(startUp({}, [HalfController]))).toContain(lostBy('HalfController'));
  });

  it('are an error on gateways, too', async () => {
    @WebSocketGateway()
    class TalkGateway {
      @SubscribeMessage('list')
      @replacing
      @SkipRateLimit()
      list() {}
    }
    const providers = [TalkGateway];
    expect(await messageOf(startUp({ limits: [login] }, [], { providers }))).toContain(lostBy('TalkGateway'));
  });

  it('do no harm below, nor where the method is another', async () => {
    @Controller()
    class KeptController {
      @Get()
      @RateLimit(login)
      @replacing
      list() {}
    }
    @Controller('overriding')
    class OverridingController extends Lost {
      @Get()
      override list() {
        return undefined;
      }
    }
    await expect(startUp({}, [KeptController, OverridingController])).resolves.toBe(undefined);
  });
});

describe('start-up errors', () => {
  const place = '@RateLimit on ReportsController.list';
  const A_DURATION =
    "milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year";
  const STEPS =
    "a duration of more than 0 and at most 1 year, or 1 to 100 durations such as ['1m', '10m', '1h'], each at least as long as the one before";
  const common =
    'name, key, cost, priority, skip, count, scope, perRoute, mode, nearLimit, unit, phase, onStoreError, onMissingKey, message, body, status, answer, hidden, retryAfter, onDecision, onRefused, onNear, ' +
    'within, blockFor, strike, forgetAfter, countRefused, replicas, reserveFor, ceiling, lends, prefetch, usage, candidate';

  it.each<[LimitSpec, string]>([
    ['nope', `got the name 'nope', wants a defined limit: 'login'`],
    ['logn', `got the name 'logn' (did you mean 'login'?), wants a defined limit: 'login'`],
    [
      wrong({ ratee: 5 }),
      `option 'ratee' is unknown (did you mean 'rate'?), wants only rate, interval, hold, onLapse, ${common}`,
    ],
    [wrong({ algo: 'leaky' }), ''],
    [wrong({ rate: 1.5 }), "option 'rate' is 1.5, wants a whole number >= 1"],
    [wrong({ burst: 2 }), ''],
    [wrong({ name: 'naïve' }), "option 'name' is 'naïve', wants 1 to 128 printable ASCII characters"],
    [wrong({ name: '' }), "option 'name' is '', wants 1 to 128 printable ASCII characters"],
    [wrong({ cost: -1 }), "option 'cost' is -1, wants a whole number >= 0, or a function of the context"],
    [wrong({ cost: '1' }), "option 'cost' is '1', wants a whole number >= 0, or a function of the context"],
    [wrong({ skip: true }), "option 'skip' is true, wants a function of the context"],
    [wrong({ message: 7 }), "option 'message' is 7, wants a string or a function that makes one"],
    [wrong({ body: { error: 'x' } }), "option 'body' is { error: 'x' }, wants a function that makes an object"],
    [wrong({ mode: 'off' }), "option 'mode' is 'off', wants one of enforce, shadow"],
    [wrong({ nearLimit: 0 }), "option 'nearLimit' is 0, wants a number > 0 and <= 1"],
    [wrong({ nearLimit: 1.1 }), "option 'nearLimit' is 1.1, wants a number > 0 and <= 1"],
    [wrong({ nearLimit: NaN }), "option 'nearLimit' is NaN, wants a number > 0 and <= 1"],
    [wrong({ nearLimit: null }), "option 'nearLimit' is null, wants a number > 0 and <= 1"],
    [wrong({ blockFor: [] }), `option 'blockFor' is [], wants ${STEPS}`],
    [wrong({ blockFor: ['1h', '1m'] }), `option 'blockFor' is [ '1h', '1m' ], wants ${STEPS}`],
    [wrong({ blockFor: Array.from({ length: 101 }, () => '1m') }), ''],
    [wrong({ blockFor: ['1m', 'soon'] }), `option 'blockFor[1]' is 'soon', wants ${A_DURATION}`],
    [wrong({ blockFor: ['1m', undefined] }), `option 'blockFor[1]' is missing, wants ${A_DURATION}`],
    [wrong({ blockFor: ['1m', '2y'] }), `option 'blockFor[1]' is '2y', wants ${A_DURATION}`],
    [wrong({ blockFor: ['1m'], forgetAfter: 0 }), `option 'forgetAfter' is 0, wants ${A_DURATION}`],
    [
      wrong({ blockFor: '1m', forgetAfter: '1h' }),
      "option 'forgetAfter' is '1h', wants nothing, unless 'blockFor' is a list of durations",
    ],
    [wrong({ forgetAfter: '1h' }), ''],
    [
      wrong({ phase: 'late' }),
      "option 'phase' is 'late', wants one of guard, authenticated, or, of the module's 'limits', middleware",
    ],
    [
      wrong({ onStoreError: 'x' }),
      "option 'onStoreError' is 'x', wants one of local, allow, deny, or a function that gives one",
    ],
    [wrong({ onMissingKey: 'x' }), "option 'onMissingKey' is 'x', wants one of ip, skip, refuse"],
    [
      wrong({ key: 'header:' }),
      "option 'key' is 'header:', wants 'ip', 'user', 'global', 'header:<name>', a function or a class that implements KeyResolver",
    ],
    [5 as unknown as LimitSpec, "got 5, wants a limit such as { algo: 'gcra', rate: 10, interval: '1s' }"],
  ])('@RateLimit(%p)', async (spec, message) => {
    const told = await messageOf(startUp({ define: { login } }, [controllerWith(spec)]));
    expect(told.startsWith(`${place}: `)).toBe(true);
    if (message !== '') expect(told).toBe(`${place}: ${message}`);
  });

  it('a key resolver that resolves nothing', async () => {
    class NoResolver {}
    expect(await messageOf(startUp({}, [controllerWith(wrong({ key: NoResolver }))]))).toContain(
      "@RateLimit on ReportsController.list: option 'key' is [class NoResolver], which has no method 'resolve', wants 'ip'",
    );
  });

  it('an option of another algorithm, already in the editor', async () => {
    // @ts-expect-error -- slices belong to sliding-window
    const definition: LimitDefinition = { algo: 'gcra', rate: 1, interval: '1s', slices: 5 };
    expect(await messageOf(startUp({ limits: [definition] }))).toContain("limits[0]: option 'slices'");
  });

  it('two limits of one name in one place', async () => {
    const told = await messageOf(startUp({}, [controllerWith(login, { ...login, blockFor: '1h' })]));
    expect(told).toBe(
      `${place}: two limits are named 'fixed-window:3/1m', wants a different 'name' for each limit of one place`,
    );
    expect(await messageOf(startUp({ limits: [login, login] }, [controllerWith(login)]))).toContain(
      'limits: two limits',
    );
  });

  it('a controller whose own limit is wrong, though it has no routes', async () => {
    @Controller()
    @RateLimit('nope')
    class EmptyController {}
    expect(await messageOf(startUp({}, [EmptyController]))).toBe(
      "@RateLimit on EmptyController: got the name 'nope', wants a defined limit: none is defined; add it to 'define'",
    );
  });

  it('@RateLimit without a limit', async () => {
    const specs = [] as unknown as [LimitSpec];
    expect(await messageOf(startUp({}, [controllerWith(...specs)]))).toContain(
      `${place}: got undefined, wants a limit`,
    );
  });

  it('a skip of a limit that does not hold there', async () => {
    @Controller()
    class SkipController {
      @Get()
      @SkipRateLimit('houry')
      list() {}
    }
    expect(await messageOf(startUp({ limits: [{ ...login, name: 'hourly' }] }, [SkipController]))).toBe(
      "@SkipRateLimit on SkipController.list: got the name 'houry', wants a limit that holds there: 'hourly'",
    );
  });

  it('a skip as @nestjs/throttler has it, with how to move', async () => {
    @Controller()
    class SkipController {
      @Get()
      @SkipRateLimit({ default: true } as never)
      list() {}
    }
    expect(await messageOf(startUp({ limits: [{ ...login, name: 'hourly' }] }, [SkipController]))).toBe(
      "@SkipRateLimit on SkipController.list: got the name { default: true }, wants a limit that holds there: 'hourly'; an object of names " +
        "is for @SkipThrottle of @nestjs/throttler, from which 'npx nestjs-sluice migrate' moves an app",
    );
  });

  it('a limiter without a module, and the error says what to import', async () => {
    @Injectable()
    class Mails {
      constructor(@InjectLimiter('mails') readonly limiter: Limiter) {}
    }
    await expect(Test.createTestingModule({ providers: [Mails] }).compile()).rejects.toThrow(
      'the Limiter of RateLimitModule.forRoot(), to import in the root module, named mails',
    );
  });

  it('two routes that nothing tells apart', async () => {
    await expect(startUp({ define: { login } }, [controllerWith('login'), controllerWith('login')])).resolves.toBe(
      undefined,
    );
    expect(await messageOf(startUp({}, [controllerWith(login), controllerWith(login)]))).toBe(
      `${place}: its counters have no name that stays the same across builds, wants ` +
        "@RateLimit.namespace('<a name of its own>')",
    );
  });

  it.each<[object, string]>([
    [
      { header: false },
      "option 'header' is unknown (did you mean 'headers'?), wants only redis, regions, limits, define, defaults, headers",
    ],
    [
      { gaurd: false },
      "option 'gaurd' is unknown (did you mean 'guard'?), wants only redis, regions, limits, define, defaults, headers",
    ],
    [{ retryJitter: 1.5 }, "option 'retryJitter' is 1.5, wants a number from 0 to 1"],
    [{ retryJitter: '0.5' }, "option 'retryJitter' is '0.5', wants a number from 0 to 1"],
    [{ problem: 'yes' }, "option 'problem' is 'yes', wants true or false"],
    [{ body: {} }, "option 'body' is {}, wants a function that makes an object"],
    [{ exposeHeaders: 'all' }, "option 'exposeHeaders' is 'all', wants true or false"],
    [{ defaults: [] }, "option 'defaults' is [], wants an object of options of limits"],
    [{ headers: 'draft-9' }, "option 'headers' is 'draft-9', wants one of draft-8, draft-6, legacy, a function"],
    [{ timeout: 'soon' }, "option 'timeout' is 'soon', wants milliseconds or a duration"],
    [{ sendTimeout: 'soon' }, "option 'sendTimeout' is 'soon', wants a duration such as '30s', more than 0, or false"],
    [{ sendTimeout: 0 }, "option 'sendTimeout' is 0, wants a duration such as '30s', more than 0, or false"],
    [
      { gather: 0.5 },
      "option 'gather' is 0.5, wants true, false or a duration from 1 to 100 ms, at most half of 'timeout'",
    ],
    [
      { gather: '1s' },
      "option 'gather' is '1s', wants true, false or a duration from 1 to 100 ms, at most half of 'timeout'",
    ],
    [
      { gather: 20, timeout: 39 },
      "option 'gather' is 20, wants true, false or a duration from 1 to 100 ms, at most half of 'timeout'",
    ],
    [
      { gather: 'always' as never },
      "option 'gather' is 'always', wants true, false or a duration from 1 to 100 ms, at most half of 'timeout'",
    ],
    [{ sendTimeout: true }, "option 'sendTimeout' is true, wants a duration such as '30s', more than 0, or false"],
    [
      { onStoreError: 'x' },
      "option 'onStoreError' is 'x', wants one of local, allow, deny, or a function that gives one",
    ],
    [{ onMissingKey: 'x' }, "option 'onMissingKey' is 'x', wants one of ip, skip, refuse"],
    [{ ipv6Prefix: 129 }, "option 'ipv6Prefix' is 129, wants a whole number >= 1 and <= 128"],
    [{ prefix: 'a{b' }, "option 'prefix' is 'a{b', wants a string that is not empty and holds no braces"],
    [{ maxKeys: 0 }, "option 'maxKeys' is 0, wants a whole number >= 1"],
    [{ maxBytes: 1.5 }, "option 'maxBytes' is 1.5, wants a whole number >= 1"],
    [{ store: {} }, "option 'store' is {}, wants a Store"],
    [{ limits: login }, "option 'limits' is { algo: 'fixed-window', rate: 3, interval: '1m' }, wants a list of limits"],
    [{ define: [] }, "option 'define' is [], wants an object of limits by their names"],
  ])('forRoot(%p)', async (options, message) => {
    expect(await messageOf(startUp(options as RateLimitModuleOptions))).toContain(`RateLimitModule: ${message}`);
  });

  it('wrong limits of the module', async () => {
    expect(await messageOf(startUp({ limits: [login, wrong({ rate: 0 })] }))).toBe(
      "limits[1]: option 'rate' is 0, wants a whole number >= 1",
    );
    expect(await messageOf(startUp({ define: { login: wrong({ rate: 0 }) } }))).toBe(
      "define.login: option 'rate' is 0, wants a whole number >= 1",
    );
    expect(await messageOf(startUp({ define: { login: { ...login, name: 'other' } } }))).toBe(
      "define.login: option 'name' is 'other', wants 'login' or none",
    );
  });

  it('a feature that defines a name otherwise than another, but not the same again', async () => {
    const imports = [RateLimitModule.forFeature({ login: { ...login } })];
    await expect(startUp({ define: { login } }, [], { imports })).resolves.toBe(undefined);
    expect(await messageOf(startUp({ define: { login: { ...login, rate: 4 } } }, [], { imports }))).toBe(
      "define: the limit 'login' is defined twice with different options, wants one definition a name",
    );
  });

  it('an injected limiter that is not defined, in a class of this app only', async () => {
    @Injectable()
    class Mailer {
      constructor(@InjectLimiter('mails') readonly mails: Limiter) {}
    }
    await expect(startUp({ define: { login } })).resolves.toBe(undefined);
    expect(await messageOf(startUp({ define: { login } }, [], { providers: [Mailer] }))).toBe(
      "@InjectLimiter in Mailer: got the name 'mails', wants a defined limit: 'login'",
    );
    const factory = {
      provide: 'FACTORY',
      useFactory: (limiter: Limiter) => limiter,
      inject: [getLimiterToken('faxes')],
    };
    expect(await messageOf(startUp({ define: { login } }, [], { providers: [factory] }))).toContain("'faxes'");
  });
});

describe('the module', () => {
  @Injectable()
  class Consumer {
    @InjectLimiter('login') readonly byProperty!: Limiter;

    constructor(
      @InjectLimiter('login') readonly logins: Limiter,
      readonly service: LimiterService,
    ) {}
  }

  @Injectable()
  class Options {
    create(): RateLimitModuleOptions {
      return { define: { login } };
    }
  }

  @Module({ providers: [Options, { provide: 'RATE', useValue: 3 }], exports: [Options, 'RATE'] })
  class OptionsModule {}

  it.each([
    ['forRoot', RateLimitModule.forRoot({ define: { login } })],
    [
      'useFactory',
      RateLimitModule.forRootAsync({
        imports: [OptionsModule],
        inject: ['RATE'],
        useFactory: (rate: number) => Promise.resolve({ define: { login: { ...login, rate } } }),
      }),
    ],
    ['useClass', RateLimitModule.forRootAsync({ useClass: Options })],
    ['useExisting', RateLimitModule.forRootAsync({ imports: [OptionsModule], useExisting: Options, guard: false })],
    ['forFeature', RateLimitModule.forRoot()],
  ])('gives the limits of %s to code', async (how, module) => {
    const imports = how === 'forFeature' ? [module, RateLimitModule.forFeature({ login })] : [module];
    const app = await Test.createTestingModule({ imports, providers: [Consumer] }).compile();
    await app.init();
    const consumer = app.get(Consumer);
    expect(await consumer.logins.consume('user:1')).toMatchObject({ limit: 'login', allowed: true, remaining: 2 });
    expect(await consumer.byProperty.consume('user:1')).toMatchObject({ remaining: 1 });
    expect(await consumer.service.for('login').consume('user:1')).toMatchObject({ remaining: 0 });
    await app.close();
  });

  it('refuses guard among what a factory gives', async () => {
    const options = { guard: false } as RateLimitModuleOptions;
    const module = RateLimitModule.forRootAsync({ useFactory: () => options });
    expect(await messageOf(Test.createTestingModule({ imports: [module] }).compile())).toContain('beside useFactory');
    const nothing = RateLimitModule.forRootAsync({ useFactory: () => undefined as never });
    expect(await messageOf(Test.createTestingModule({ imports: [nothing] }).compile())).toContain('got undefined');
  });

  it('opens the store at start-up, and closes it at the end unless it is the app’s own', async () => {
    const calls: string[] = [];
    class OwnStore extends MemoryStore {
      open(): Promise<void> {
        calls.push('open');
        return Promise.resolve();
      }

      override close(): Promise<void> {
        calls.push('close');
        return super.close();
      }
    }
    const store = new OwnStore();
    const own = await Test.createTestingModule({ imports: [RateLimitModule.forRoot({ store })] }).compile();
    await own.init();
    await own.close();
    expect(calls).toEqual(['open']);
  });

  it('can replace a limiter in tests', async () => {
    @Injectable()
    class Wants {
      constructor(@Inject(getLimiterToken('login')) readonly logins: object) {}
    }
    const stub = {};
    const app = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define: { login } })],
      providers: [Wants],
    })
      .overrideProvider(getLimiterToken('login'))
      .useValue(stub)
      .compile();
    expect(app.get(Wants).logins).toBe(stub);
    await app.close();
  });
});
