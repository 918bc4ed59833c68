/**
 * Apps of other specs that run on would be further apps of this process.
 * @library own
 */
import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  Controller,
  Get,
  Injectable,
  Module,
  type OnModuleInit,
  type Provider,
  Scope,
  SetMetadata,
  type Type,
} from '@nestjs/common';
import { ContextIdFactory, LazyModuleLoader } from '@nestjs/core';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import {
  LimiterService,
  RateLimit,
  RateLimitArgumentError,
  RateLimitConfigError,
  RateLimitExceededException,
  RateLimitModule,
  type RateLimitModuleOptions,
  RateLimitTimeoutError,
} from '../../../lib/index.js';
import { Limited } from '../../../lib/index.js';
import { createTestingStore, RateLimitTesting, TestClock } from '../../../lib/testing/index.js';

interface User {
  readonly id: number;
}
const ann: User = { id: 1 };
const bob: User = { id: 2 };

const define: RateLimitModuleOptions['define'] = {
  mails: { algo: 'sliding-log', rate: 2, interval: '1m' },
  queued: { algo: 'leaky-bucket', rate: 1, interval: '1s', queue: 5 },
  paced: { algo: 'gcra', rate: 1, interval: '1s', burst: 1 },
  slots: { algo: 'concurrency', limit: 1, ttl: '1m' },
  users: { algo: 'gcra', rate: 1, interval: '1h', key: 'user' },
  orgs: { algo: 'gcra', rate: 9, interval: '1h' },
  teams: { algo: 'gcra', rate: 9, interval: '1h', within: 'orgs' },
};

const apps: TestingModule[] = [];
let clock: TestClock;

beforeEach(() => {
  clock = new TestClock();
});

afterEach(async () => {
  jest.useRealTimers();
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

/** Starts an app with its own counters. */
async function start(
  providers: Provider[],
  { controllers = [], options = { define } }: { controllers?: Type[]; options?: RateLimitModuleOptions } = {},
  change = (builder: TestingModuleBuilder) => builder,
): Promise<TestingModule> {
  const builder = Test.createTestingModule({ imports: [RateLimitModule.forRoot(options)], providers, controllers });
  const counted = RateLimitTesting.useStore(builder, createTestingStore({ clock }));
  const app = await change(counted).compile();
  app.useLogger(false);
  apps.push(app);
  return app.init();
}

@Injectable()
class Mailer {
  readonly sent: number[] = [];

  /** Per user. */
  @Limited<Mailer['send']>('mails', { key: (user) => `user:${user.id}` })
  async send(user: User): Promise<number> {
    this.sent.push(user.id);
    return Promise.resolve(this.sent.length);
  }

  @Limited('mails', { key: (user: User) => `user:${user.id}`, onLimit: 'skip' })
  async remind(user: User): Promise<number | undefined> {
    return this.send.length + user.id;
  }

  @Limited('mails')
  async tell(): Promise<void> {
    this.sent.push(0);
    await Promise.resolve();
  }

  @Limited('mails', { key: () => 'bulk', cost: (users: readonly User[]) => users.length })
  async sendAll(users: readonly User[]): Promise<number> {
    return Promise.resolve(users.length);
  }
}

const refused = expect.any(RateLimitExceededException) as unknown;

describe('calls of a limited method', () => {
  it('run with the arguments and this until the limit is used up, per key', async () => {
    const mailer = (await start([Mailer])).get(Mailer);
    expect([await mailer.send(ann), await mailer.send(ann), await mailer.send(bob)]).toEqual([1, 2, 3]);
    const error = await mailer.send(ann).catch((thrown: unknown) => thrown);
    expect(error).toEqual(refused);
    expect(error).toMatchObject({ limits: ['mails'], retryAfterMs: 60_000 });
    expect(mailer.sent).toEqual([1, 1, 2]);
    clock.advance('1m');
    expect(await mailer.send(ann)).toBe(4);
  });

  it('count together without a key, and with other code that uses its name', async () => {
    const app = await start([Mailer]);
    const mailer = app.get(Mailer);
    await mailer.tell();
    expect(await app.get(LimiterService).for('mails').peek('global')).toMatchObject({ remaining: 1 });
    await mailer.tell();
    await expect(mailer.tell()).rejects.toEqual(refused);
  });

  it('are skipped with a promise of nothing', async () => {
    const mailer = (await start([Mailer])).get(Mailer);
    expect([await mailer.remind(ann), await mailer.remind(ann), await mailer.remind(ann)]).toEqual([2, 2, undefined]);
  });

  it('take the units that a function returns', async () => {
    const mailer = (await start([Mailer])).get(Mailer);
    await expect(mailer.sendAll([ann, bob, ann])).rejects.toMatchObject({ retryAfterMs: Infinity });
    expect(await mailer.sendAll([ann, bob])).toBe(2);
    await expect(mailer.sendAll([ann])).rejects.toEqual(refused);
  });

  it('reject where a function fails or returns something wrong, and take nothing', async () => {
    @Injectable()
    class Wrong {
      // @ts-expect-error A key is a string.
      @Limited('mails', { key: (user: User) => user.id })
      async key(_user: User): Promise<void> {}

      @Limited('mails', { cost: () => 0.5 })
      async cost(): Promise<void> {}

      @Limited('mails', {
        key: () => {
          throw new TypeError('no user');
        },
      })
      async thrown(): Promise<void> {}
    }
    const app = await start([Wrong]);
    const wrong = app.get(Wrong);
    await expect(wrong.key(ann)).rejects.toThrow(
      new RateLimitArgumentError(
        "@Limited on Wrong.key.key for limit 'mails': expected the function to return a string that is not empty, received 1",
      ),
    );
    await expect(wrong.cost()).rejects.toThrow(/^@Limited on Wrong\.cost\.cost for limit 'mails': expected/);
    await expect(wrong.thrown()).rejects.toThrow(new TypeError('no user'));
    expect(await app.get(LimiterService).for('mails').peek('global')).toMatchObject({ remaining: 2 });
  });

  it('hold a slot until they end or fail', async () => {
    const gates: { resolve: () => void; reject: (error: Error) => void }[] = [];
    @Injectable()
    class Renders {
      @Limited('slots')
      render(): Promise<void> {
        return new Promise((resolve, reject) => gates.push({ resolve, reject }));
      }
    }
    const renders = (await start([Renders])).get(Renders);
    const first = renders.render();
    await expect(renders.render()).rejects.toEqual(refused);
    gates[0]!.reject(new Error('out of ink'));
    await expect(first).rejects.toThrow('out of ink');
    const second = renders.render();
    await new Promise(setImmediate);
    gates[1]!.resolve();
    await second;
    expect(gates).toHaveLength(2);
  });
});

describe('the instance of a call', () => {
  it('of a request has the limits of its app', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest extends Mailer {
      constructor(readonly service: LimiterService) {
        super();
      }
    }
    const app = await start([PerRequest]);
    const resolve = () => app.resolve(PerRequest, ContextIdFactory.create());
    const [one, other] = [await resolve(), await resolve()];
    expect(one).not.toBe(other);
    expect([await one.send(ann), await other.send(ann)]).toEqual([1, 1]);
    await expect(one.send(ann)).rejects.toEqual(refused);
    expect(one.service).toBe(app.get(LimiterService));
  });

  it('may be transient, or made by a function', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient extends Mailer {}
    @Injectable()
    class User1 {
      constructor(readonly mailer: Transient) {}
    }
    const made = { provide: 'made', useFactory: () => new Mailer() };
    const perRequest = { provide: 'per request', scope: Scope.REQUEST, useFactory: () => new Mailer() };
    const app = await start([Transient, User1, made, perRequest]);
    const mailers = [
      app.get(User1).mailer,
      app.get<Mailer>('made'),
      await app.resolve<Mailer>('per request', ContextIdFactory.create()),
    ];
    const answers = await Promise.all(mailers.map((mailer) => mailer.send(ann).catch(() => 'refused')));
    expect(answers).toEqual([1, 1, 'refused']);
  });

  it('belongs to one of several apps of a process', async () => {
    const made = { provide: 'made', useFactory: () => new Mailer() };
    const [one, other] = [await start([Mailer, made]), await start([Mailer, made])];
    // An app without the class makes nothing unclear.
    await start([]);
    apps.unshift(apps.pop()!);
    for (const app of [one, other]) {
      await app.get(Mailer).send(ann);
      await app.get<Mailer>('made').send(ann);
      await expect(app.get(Mailer).send(ann)).rejects.toEqual(refused);
    }
    await expect(new Mailer().send(bob)).rejects.toThrow(
      new RateLimitConfigError(
        "@Limited on Mailer.send: this process has several apps, and Nest didn't create this instance, so its app is unknown. " +
          "List the class in the 'providers' of a module",
      ),
    );
    await apps.pop()!.close();
    expect(await new Mailer().send(bob)).toBe(1);
    for (const app of apps.splice(0)) await app.close();
    await expect(new Mailer().send(ann)).rejects.toThrow(/^@Limited on Mailer\.send: this instance belongs to no app/);
  });

  it('shows nothing of it', async () => {
    const mailer = (await start([Mailer])).get(Mailer);
    expect(mailer).toStrictEqual(new Mailer());
    expect(Object.keys(mailer)).toEqual(['sent']);
  });

  it('may be of a subclass, whose own method has its own limits', async () => {
    @Injectable()
    class Inheriting extends Mailer {}
    @Injectable()
    class Overriding extends Mailer {
      override async send(user: User): Promise<number> {
        return Promise.resolve(-user.id);
      }
    }
    @Injectable()
    class Calling extends Mailer {
      @Limited('paced', { key: () => 'calling' })
      override async send(user: User): Promise<number> {
        return (await super.send(user)) * 100;
      }
    }
    const app = await start([Inheriting, Overriding, Calling]);
    const over = app.get(Overriding);
    expect([await over.send(ann), await over.send(ann), await over.send(ann)]).toEqual([-1, -1, -1]);
    expect(await app.get(Inheriting).send(ann)).toBe(1);
    expect(await app.get(Calling).send(ann)).toBe(100);
    await expect(app.get(Calling).send(bob)).rejects.toMatchObject({ limits: ['paced'] });
    await expect(app.get(Inheriting).send(ann)).rejects.toMatchObject({ limits: ['mails'] });
  });

  it('can be called from onModuleInit, even of what the module itself needs', async () => {
    @Injectable()
    class Rates extends Mailer implements OnModuleInit {
      first: unknown;

      async onModuleInit(): Promise<void> {
        this.first = await this.send(ann);
      }
    }
    @Module({ providers: [Rates], exports: [Rates] })
    class RatesModule {}
    const module = RateLimitModule.forRootAsync({
      imports: [RatesModule],
      inject: [Rates],
      useFactory: () => ({ define }),
    });
    const app = await Test.createTestingModule({ imports: [module] }).compile();
    apps.push(app);
    await app.init();
    expect(app.get(Rates).first).toBe(1);
  });

  it('may come from a module that is loaded later', async () => {
    @Module({ providers: [Mailer] })
    class LaterModule {}
    const app = await start([]);
    const loaded = await app.get(LazyModuleLoader).load(() => LaterModule);
    expect(await loaded.get(Mailer).send(ann)).toBe(1);
  });

  it('has no limits where a test replaces them', async () => {
    const app = await Test.createTestingModule({ providers: [Mailer] })
      .useMocker(() => ({}))
      .compile();
    apps.push(app);
    const mailer = app.get(Mailer);
    expect([await mailer.send(ann), await mailer.send(ann), await mailer.send(ann)]).toEqual([1, 2, 3]);
    const disabled = await start([Mailer], {}, (builder) => RateLimitTesting.disable(builder));
    for (let call = 1; call < 5; call++) expect(await disabled.get(Mailer).send(ann)).toBe(call);
  });
});

describe('decorators of the same method', () => {
  const keys = ['above', 'below'];
  class Jobs {
    @SetMetadata('above', { cron: '* * * * *' })
    @Limited('mails')
    @SetMetadata('below', { event: 'user.created' })
    async run(_first: string, _second: string): Promise<void> {}
  }

  it('keep what they set, as well as the name and the number of parameters', () => {
    const { run } = Jobs.prototype as unknown as { run: () => void };
    expect(keys.map((key) => Reflect.getMetadata(key, run) as unknown)).toEqual([
      { cron: '* * * * *' },
      { event: 'user.created' },
    ]);
    expect([run.name, run.length]).toEqual(['run', 2]);
    expect(Reflect.getMetadata('design:paramtypes', Jobs.prototype, 'run')).toEqual([String, String]);
  });

  it('may be limits of its own, of which the uppermost is checked first', async () => {
    @Injectable()
    class Twice {
      @Limited('paced', { key: () => 'twice' })
      @Limited('mails', { key: () => 'twice' })
      async run(): Promise<string> {
        return Promise.resolve('ran');
      }
    }
    const twice = (await start([Twice])).get(Twice);
    expect(await twice.run()).toBe('ran');
    await expect(twice.run()).rejects.toMatchObject({ limits: ['paced'] });
    clock.advance('1s');
    expect(await twice.run()).toBe('ran');
    clock.advance('1s');
    await expect(twice.run()).rejects.toMatchObject({ limits: ['mails'] });
  });

  it('make it a route, whose @RateLimit still applies', async () => {
    @Controller('mails')
    class Mails {
      @Limited('mails')
      @RateLimit('paced')
      @Get()
      async list(): Promise<string> {
        return Promise.resolve('listed');
      }
    }
    const testing = await start([], { controllers: [Mails] });
    const app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/mails`;
    const first = await fetch(url);
    expect([first.status, await first.text(), first.headers.get('ratelimit')]).toEqual([
      200,
      'listed',
      expect.stringContaining('"paced"'),
    ]);
    const answers = [];
    for (let request = 0; request < 2; request++) {
      clock.advance('1s');
      const { status, headers } = await fetch(url);
      answers.push([status, headers.get('retry-after')]);
    }
    expect(answers).toEqual([
      [200, null],
      [429, '58'],
    ]);
    await app.close();
  });
});

describe('the start of an app', () => {
  const notStarted = async (type: Type, options?: RateLimitModuleOptions) =>
    start([type], options && { options }).then(
      () => 'started',
      (error: unknown) => String(error),
    );

  it.each([Scope.DEFAULT, Scope.REQUEST, Scope.TRANSIENT])('fails for an unknown limit, scope %p', async (scope) => {
    @Injectable({ scope })
    class Unknown {
      @Limited('mials')
      async send(): Promise<void> {}
    }
    expect(await notStarted(Unknown)).toBe(
      "RateLimitConfigError: @Limited on Unknown.send: unknown limit 'mials'. Did you mean 'mails'?",
    );
  });

  it('fails for limits that a method alone cannot count', async () => {
    @Injectable()
    class Keyless {
      @Limited('users')
      async send(): Promise<void> {}
    }
    @Injectable()
    class Nested {
      @Limited('teams', { key: () => 'a' })
      async send(): Promise<void> {}
    }
    expect(await notStarted(Keyless)).toBe(
      "RateLimitConfigError: @Limited on Keyless.send: limit 'users' counts by 'user', which only requests have. Set the option 'key' " +
        "to a function of the method's arguments",
    );
    expect(await notStarted(Nested)).toMatch(/^RateLimitConfigError: @Limited on Nested\.send: .*'teams'/);
  });

  it('fails without the module, and says where it is needed', async () => {
    await expect(Test.createTestingModule({ providers: [Mailer] }).compile()).rejects.toThrow(
      /the Mailer\. Please make sure that the "Symbol\(@Limited on Mailer\.send needs RateLimitModule\.forRoot\(\) in the root module\)" property/,
    );
  });

  it('fails where a call comes before the limits', async () => {
    @Injectable()
    class Early extends Mailer {
      readonly early = this.send(ann).catch((error: unknown) => error);
    }
    const app = await start([Early]);
    expect(await app.get(Early).early).toBeInstanceOf(RateLimitConfigError);
    expect(await app.get(Early).send(ann)).toBe(1);
  });

  it('takes limits that are written out: unnamed ones count per method', async () => {
    const one = () => ({ algo: 'gcra', rate: 1, interval: '1h', burst: 1 }) as const;
    @Injectable()
    class Written {
      @Limited(one())
      async first(): Promise<void> {}

      @Limited(one())
      async second(): Promise<void> {}

      @Limited({ name: 'both', ...one() })
      async third(): Promise<void> {}

      @Limited({ name: 'both', ...one() })
      async fourth(): Promise<void> {}
    }
    const app = await start([Written]);
    const written = app.get(Written);
    const names = ['first', 'second', 'first', 'third', 'fourth'] as const;
    const answers = [];
    for (const name of names) {
      answers.push(
        await written[name]().then(
          () => 'ran',
          () => 'refused',
        ),
      );
    }
    expect(answers).toEqual(['ran', 'ran', 'refused', 'ran', 'refused']);
    @Injectable()
    class A {
      @Limited(one())
      async run(): Promise<void> {}
    }
    expect(await notStarted(A)).toMatch(/@Limited on A\.run: its class has no name that stays the same across builds/);
  });
});

describe('wrong uses', () => {
  const used = (limit: unknown, options?: unknown, descriptor: unknown = { value: async () => undefined }) => {
    class Used {}
    try {
      Limited(limit as string, options as { onLimit: 'wait' })(Used.prototype, 'run', descriptor as never);
      return 'nothing';
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each([
    [['mails', undefined, undefined], 'nothing'],
    [
      ['mails', undefined, { get: () => undefined }],
      'expected a method of a class, which @Limited can replace, received undefined',
    ],
    [[''], /: expected the name of a defined limit, a limit such as .* received ''/],
    [['mails', 5], /: expected an object of options, received 5/],
    [['mails', { kee: () => 'a' }], ": unknown option 'kee'. Did you mean 'key'?"],
    [['mails', { key: 'ip' }], ".key: expected a function of the method's arguments, received 'ip'"],
    [
      ['mails', { cost: -1 }],
      ".cost: expected a whole number >= 0, or a function of the method's arguments, received -1",
    ],
    [['mails', { onLimit: 'drop' }], ".onLimit: expected 'throw', 'wait' or 'skip', received 'drop'"],
    [['mails', { onLimit: 'wait', timeout: '5x' }], /\.timeout: expected .* received '5x'/],
    [['mails', { onLimit: 'wait', signal: 1 }], /\.signal: expected a function of the method's arguments/],
    [['mails', { timeout: '5s' }], ": option 'timeout' has no effect here. Set onLimit: 'wait', or remove it"],
  ] as [Parameters<typeof used>, string | RegExp][])('%j', (given, expected) => {
    const message = used(...given);
    if (expected instanceof RegExp) expect(message).toMatch(expected);
    else expect(message).toContain(expected);
  });

  it('of a static method', () => {
    const use = () => {
      class Used {
        @Limited('mails')
        static async run(): Promise<void> {}
      }
      return Used;
    };
    expect(use).toThrow(/^@Limited on Used\.run: a static method belongs to no app/);
  });

  it('are refused by types', () => {
    class Used {
      // @ts-expect-error It returns no promise.
      @Limited('mails')
      atOnce(): void {}

      // @ts-expect-error It would return undefined when it is skipped.
      @Limited('mails', { onLimit: 'skip' })
      async skipped(): Promise<string> {
        return Promise.resolve('a');
      }

      // @ts-expect-error It has other parameters.
      @Limited<Mailer['send']>('mails', { key: (user) => `user:${user.id}` })
      async other(_name: string): Promise<number> {
        return Promise.resolve(1);
      }
    }
    expect(Used).toBeDefined();
  });
});

describe('calls that wait', () => {
  const ran: [string, number][] = [];
  @Injectable()
  class Syncs {
    @Limited('paced', { key: (shop: string) => `shop:${shop}`, onLimit: 'wait' })
    async sync(shop: string, page: number): Promise<number> {
      ran.push([shop, page]);
      return Promise.resolve(page);
    }

    @Limited('paced', { onLimit: 'wait', timeout: '1500ms', signal: (signal?: AbortSignal) => signal })
    async timed(_signal?: AbortSignal): Promise<string> {
      return Promise.resolve('ran');
    }

    @Limited('queued')
    async queue(page: number): Promise<void> {
      ran.push(['queue', page]);
      await Promise.resolve();
    }
  }

  beforeEach(() => {
    ran.length = 0;
    jest.useFakeTimers();
  });

  /** On the store of the module, whose clock is that of the fake timers. */
  async function startWaiting(): Promise<Syncs> {
    const app = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define })],
      providers: [Syncs],
    }).compile();
    apps.push(app);
    return (await app.init()).get(Syncs);
  }

  it('run in the order of the calls for each key, when their units are there', async () => {
    const syncs = await startWaiting();
    const calls = [1, 2, 3].flatMap((page) => ['a', 'b'].map((shop) => syncs.sync(shop, page)));
    const pages = (shop: string) => ran.filter(([each]) => each === shop).map(([, page]) => page);
    for (let seconds = 0; seconds < 3; seconds++) {
      await jest.advanceTimersByTimeAsync(seconds === 0 ? 0 : 1000);
      const expected = [1, 2, 3].slice(0, seconds + 1);
      expect([pages('a'), pages('b')]).toEqual([expected, expected]);
    }
    expect(await Promise.all(calls)).toEqual([1, 1, 2, 2, 3, 3]);
  });

  it('end by a timeout or a signal without having run', async () => {
    const syncs = await startWaiting();
    const controller = new AbortController();
    expect(await syncs.timed()).toBe('ran');
    const [second, third, fourth] = [syncs.timed(controller.signal), syncs.timed(), syncs.timed()].map((call) =>
      call.catch((error: unknown) => error),
    );
    expect(await third).toBeInstanceOf(RateLimitTimeoutError);
    expect(await fourth).toBeInstanceOf(RateLimitTimeoutError);
    controller.abort(new Error('closing'));
    expect(await second).toEqual(new Error('closing'));
    await jest.advanceTimersByTimeAsync(1000);
    expect(await syncs.timed()).toBe('ran');
  });

  it('of a limit that spaces calls run at their times without waiting in a queue', async () => {
    const syncs = await startWaiting();
    const calls = [syncs.queue(1), syncs.queue(2)];
    await jest.advanceTimersByTimeAsync(0);
    const before = ran.length;
    await jest.advanceTimersByTimeAsync(1000);
    await Promise.all(calls);
    expect([before, ran]).toEqual([
      1,
      [
        ['queue', 1],
        ['queue', 2],
      ],
    ]);
  });
});
