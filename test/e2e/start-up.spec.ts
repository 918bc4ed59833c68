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
import { atPlace } from '../support/limits/at-place.js';

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
      /^RateLimitModule: expected an object of options, received undefined. Import it once, by forRoot\(\)/,
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

const lostBy = (name: string) => `@RateLimit on ${name}.list: a decorator above it replaced the method`;

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

  it.each<[LimitSpec, string]>([
    ['nope', `unknown limit 'nope', expected a defined limit: 'login'`],
    ['logn', `unknown limit 'logn'. Did you mean 'login'?`],
    [wrong({ ratee: 5 }), `unknown option 'ratee'. Did you mean 'rate'?`],
    [wrong({ algo: 'leaky' }), ''],
    [wrong({ rate: 1.5 }), 'rate: expected a whole number >= 1, received 1.5'],
    [wrong({ rate: new Date(5) }), 'rate: expected a whole number >= 1, received 1970-01-01T00:00:00.005Z'],
    [wrong({ burst: 2 }), ''],
    [wrong({ name: 'naïve' }), "name: expected 1 to 128 printable ASCII characters, received 'naïve'"],
    [wrong({ name: '' }), "name: expected 1 to 128 printable ASCII characters, received ''"],
    [
      wrong({ cost: -1 }),
      "cost: expected a whole number >= 0, a function of the context, or { by, per, estimate? } such as { by: 'bytes', per: '1kB' }, received -1",
    ],
    [
      wrong({ cost: '1' }),
      "cost: expected a whole number >= 0, a function of the context, or { by, per, estimate? } such as { by: 'bytes', per: '1kB' }, received '1'",
    ],
    [wrong({ skip: true }), 'skip: expected a function of the context, received true'],
    [wrong({ message: 7 }), 'message: expected a string or a function that returns one, received 7'],
    [wrong({ body: { error: 'x' } }), "body: expected a function that returns an object, received { error: 'x' }"],
    [wrong({ mode: 'off' }), "mode: expected one of enforce, shadow, received 'off'"],
    [wrong({ nearLimit: 0 }), 'nearLimit: expected a number > 0 and <= 1, received 0'],
    [wrong({ nearLimit: 1.1 }), 'nearLimit: expected a number > 0 and <= 1, received 1.1'],
    [wrong({ nearLimit: NaN }), 'nearLimit: expected a number > 0 and <= 1, received NaN'],
    [wrong({ nearLimit: null }), 'nearLimit: expected a number > 0 and <= 1, received null'],
    [wrong({ blockFor: [] }), `blockFor: expected ${STEPS}, received []`],
    [wrong({ blockFor: ['1h', '1m'] }), `blockFor: expected ${STEPS}, received [ '1h', '1m' ]`],
    [wrong({ blockFor: Array.from({ length: 101 }, () => '1m') }), ''],
    [wrong({ blockFor: ['1m', 'soon'] }), `blockFor[1]: expected ${A_DURATION}, received 'soon'`],
    [wrong({ blockFor: ['1m', undefined] }), `blockFor[1]: missing, expected ${A_DURATION}`],
    [wrong({ blockFor: ['1m', '2y'] }), `blockFor[1]: expected ${A_DURATION}, received '2y'`],
    [wrong({ blockFor: ['1m'], forgetAfter: 0 }), `forgetAfter: expected ${A_DURATION}, received 0`],
    [
      wrong({ blockFor: '1m', forgetAfter: '1h' }),
      "forgetAfter: expected nothing, unless 'blockFor' is a list of durations, received '1h'",
    ],
    [wrong({ forgetAfter: '1h' }), ''],
    [
      wrong({ phase: 'late' }),
      "phase: expected one of guard, authenticated, or, of the module's 'limits', middleware, received 'late'",
    ],
    [
      wrong({ onStoreError: 'x' }),
      "onStoreError: expected one of local, allow, deny, or a function that returns one, received 'x'",
    ],
    [wrong({ onMissingKey: 'x' }), "onMissingKey: expected one of ip, skip, refuse, received 'x'"],
    [
      wrong({ key: 'header:' }),
      "key: expected 'ip', 'user', 'global', 'header:<name>', a function or a class that implements KeyResolver, received 'header:'",
    ],
    [5 as unknown as LimitSpec, "expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received 5"],
  ])('@RateLimit(%p)', async (spec, message) => {
    const told = await messageOf(startUp({ define: { login } }, [controllerWith(spec)]));
    expect([`${place}:`, `${place}.`]).toContain(told.slice(0, place.length + 1));
    if (message !== '') expect(told).toBe(atPlace(place, message));
  });

  it('a key resolver that resolves nothing', async () => {
    class NoResolver {}
    expect(await messageOf(startUp({}, [controllerWith(wrong({ key: NoResolver }))]))).toMatch(
      /@RateLimit on ReportsController\.list\.key: expected 'ip'.+, received \[class NoResolver\], which has no method 'resolve'/,
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
      `${place}: two limits have the name 'fixed-window:3/1m'. Give each limit of one place its own 'name'`,
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
      "@RateLimit on EmptyController: unknown limit 'nope'. No limit is defined: add it to 'define'",
    );
  });

  it('@RateLimit without a limit', async () => {
    const specs = [] as unknown as [LimitSpec];
    expect(await messageOf(startUp({}, [controllerWith(...specs)]))).toContain(
      `${place}: expected a limit such as { algo: 'gcra', rate: 10, interval: '1s' }, received undefined`,
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
      "@SkipRateLimit on SkipController.list: expected a limit of the module or the class ('hourly'), received 'houry'",
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
      "@SkipRateLimit on SkipController.list: expected a limit of the module or the class ('hourly'), received { default: true }; an object of names " +
        "is for @SkipThrottle of @nestjs/throttler, and 'npx nestjs-sluice migrate' converts an app from it",
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
      `${place}: its counters have no name that stays the same across builds. Add ` +
        "@RateLimit.namespace('<a unique name>')",
    );
  });

  it.each<[object, string]>([
    [{ header: false }, "unknown option 'header'. Did you mean 'headers'?"],
    [{ gaurd: false }, "unknown option 'gaurd'. Did you mean 'guard'?"],
    [{ retryJitter: 1.5 }, 'retryJitter: expected a number from 0 to 1, received 1.5'],
    [{ retryJitter: '0.5' }, "retryJitter: expected a number from 0 to 1, received '0.5'"],
    [{ localShare: '0.5' }, "localShare: expected a number > 0 and <= 1, received '0.5'"],
    [{ localShare: true }, 'localShare: expected a number > 0 and <= 1, received true'],
    [{ localShare: Symbol('half') }, 'localShare: expected a number > 0 and <= 1, received Symbol(half)'],
    [{ problem: 'yes' }, "problem: expected true or false, received 'yes'"],
    [{ body: {} }, 'body: expected a function that returns an object, received {}'],
    [{ exposeHeaders: 'all' }, "exposeHeaders: expected true or false, received 'all'"],
    [{ defaults: [] }, 'defaults: expected an object of options of limits, received []'],
    [
      { headers: 'draft-9' },
      "headers: expected one of draft-8, draft-6, legacy, a function, a list of these, or false, received 'draft-9'",
    ],
    [
      { timeout: 'soon' },
      "timeout: expected milliseconds or a duration such as '250ms', '10s', '1m' (units: ms, s, m, h, d, w, y), more than 0 and at most 1 year, received 'soon'",
    ],
    [{ sendTimeout: 'soon' }, "sendTimeout: expected a duration such as '30s', more than 0, or false, received 'soon'"],
    [{ sendTimeout: 0 }, "sendTimeout: expected a duration such as '30s', more than 0, or false, received 0"],
    [
      { gather: 0.5 },
      "gather: expected true, false or a duration from 1 to 100 ms, at most half of 'timeout', received 0.5",
    ],
    [
      { gather: '1s' },
      "gather: expected true, false or a duration from 1 to 100 ms, at most half of 'timeout', received '1s'",
    ],
    [
      { gather: 20, timeout: 39 },
      "gather: expected true, false or a duration from 1 to 100 ms, at most half of 'timeout', received 20",
    ],
    [
      { gather: 'always' as never },
      "gather: expected true, false or a duration from 1 to 100 ms, at most half of 'timeout', received 'always'",
    ],
    [{ sendTimeout: true }, "sendTimeout: expected a duration such as '30s', more than 0, or false, received true"],
    [
      { onStoreError: 'x' },
      "onStoreError: expected one of local, allow, deny, or a function that returns one, received 'x'",
    ],
    [{ onMissingKey: 'x' }, "onMissingKey: expected one of ip, skip, refuse, received 'x'"],
    [{ ipv6Prefix: 129 }, 'ipv6Prefix: expected a whole number >= 1 and <= 128, received 129'],
    [{ prefix: 'a{b' }, "prefix: expected a string that is not empty and holds no braces, received 'a{b'"],
    [{ maxKeys: 0 }, 'maxKeys: expected a whole number >= 1, received 0'],
    [{ maxBytes: 1.5 }, 'maxBytes: expected a whole number >= 1, received 1.5'],
    [{ store: {} }, 'store: expected a Store, received {}'],
    [
      { limits: login },
      "limits: expected a list of limits, received { algo: 'fixed-window', rate: 3, interval: '1m' }",
    ],
    [{ define: [] }, 'define: expected an object of limits by their names, received []'],
    [{ define: new Map([['login', login]]) }, 'define: expected an object of limits by their names, received Map'],
    [{ define: Promise.resolve({ login }) }, 'define: expected an object of limits by their names, received Promise'],
    [{ defaults: Promise.resolve({}) }, 'defaults: expected an object of options of limits, received Promise'],
  ])('forRoot(%p)', async (options, message) => {
    expect(await messageOf(startUp(options as RateLimitModuleOptions))).toContain(atPlace('RateLimitModule', message));
  });

  it('options that are still a promise, or a map', async () => {
    const promised = Promise.resolve({ limits: [login] });
    expect(await messageOf(startUp(promised as never))).toContain('expected an object of options, received Promise');
    const useFactory = () => new Map([['limits', [login]]]) as never;
    const imports = [RateLimitModule.forRootAsync({ useFactory })];
    expect(await messageOf(Test.createTestingModule({ imports }).compile())).toContain(
      'RateLimitModule: expected an object of options, received Map',
    );
    expect(() => RateLimitModule.forFeature(Promise.resolve({ login }) as never)).toThrow(
      'forFeature: expected an object of options, received Promise',
    );
  });

  it('limits that are still a query, which runs once it is awaited', async () => {
    // oxlint-disable-next-line unicorn/no-thenable -- query builders are like this
    const query = { then: (resolve: (found: unknown) => void) => resolve({ login }) };
    expect(await messageOf(startUp({ define: query as never }))).toContain(
      'define: expected an object of limits by their names, received {',
    );
    expect(await messageOf(startUp(query as never))).toContain('expected an object of options, received {');
  });

  it('lists that are still a promise', async () => {
    expect(await messageOf(startUp({ lists: Promise.resolve({ deny: [] }) as never }))).toContain(
      'lists: expected an object of options, received Promise',
    );
  });

  it('wrong limits of the module', async () => {
    expect(await messageOf(startUp({ limits: [login, wrong({ rate: 0 })] }))).toBe(
      'limits[1].rate: expected a whole number >= 1, received 0',
    );
    expect(await messageOf(startUp({ define: { login: wrong({ rate: 0 }) } }))).toBe(
      'define.login.rate: expected a whole number >= 1, received 0',
    );
    expect(await messageOf(startUp({ define: { login: { ...login, name: 'other' } } }))).toBe(
      "define.login.name: expected 'login' or none, received 'other'",
    );
  });

  it('a feature that defines a name otherwise than another, but not the same again', async () => {
    const imports = [RateLimitModule.forFeature({ login: { ...login } })];
    await expect(startUp({ define: { login } }, [], { imports })).resolves.toBe(undefined);
    expect(await messageOf(startUp({ define: { login: { ...login, rate: 4 } } }, [], { imports }))).toBe(
      "define: the limit 'login' is defined twice with different options. Define each name once",
    );
  });

  it('an injected limiter that is not defined, in a class of this app only', async () => {
    @Injectable()
    class Mailer {
      constructor(@InjectLimiter('mails') readonly mails: Limiter) {}
    }
    await expect(startUp({ define: { login } })).resolves.toBe(undefined);
    expect(await messageOf(startUp({ define: { login } }, [], { providers: [Mailer] }))).toBe(
      "@InjectLimiter in Mailer: unknown limit 'mails', expected a defined limit: 'login'",
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

  it('says how to set it up if only forFeature is imported', async () => {
    const compiled = Test.createTestingModule({ imports: [RateLimitModule.forFeature({ login })] }).compile();
    expect(await messageOf(compiled)).toBe(
      'RateLimitModule.forFeature: RateLimitModule is not set up. Import RateLimitModule.forRoot() or forRootAsync() in the root module of ' +
        'the app',
    );
  });

  it('expects something that provides the options of forRootAsync', () => {
    expect(() => RateLimitModule.forRootAsync({})).toThrow(
      'RateLimitModule.forRootAsync: useFactory: missing, expected a function that returns the options, or useClass or useExisting',
    );
  });

  it('refuses guard among what a factory gives', async () => {
    const options = { guard: false } as RateLimitModuleOptions;
    const module = RateLimitModule.forRootAsync({ useFactory: () => options });
    expect(await messageOf(Test.createTestingModule({ imports: [module] }).compile())).toContain(
      "option 'guard' came from the factory, which is too late. Put it next to useFactory, useClass or useExisting",
    );
    const nothing = RateLimitModule.forRootAsync({ useFactory: () => undefined as never });
    expect(await messageOf(Test.createTestingModule({ imports: [nothing] }).compile())).toContain('received undefined');
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
