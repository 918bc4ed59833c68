import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  Get,
  type INestApplication,
  Injectable,
  Logger,
  type Provider,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import {
  type ClientProxy,
  ClientProxyFactory,
  type CustomStrategy,
  type CustomTransportStrategy,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  Server,
  Transport,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { firstValueFrom, lastValueFrom, type Observable } from 'rxjs';
import {
  type CheckResult,
  type Decision,
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RateLimitDecision,
  RateLimitExceededException,
  RateLimitGuard,
  RateLimitModule,
} from '../../lib/index.js';
import { HttpApp } from './http-app.js';
import { freshPrefix, ManualClock } from '../support/limits/stores.js';
import { until } from '../support/time/until.js';

/** What the handlers wait for, and how often one was reached. */
const work = { reached: 0, leave: () => {}, gate: Promise.resolve() };

const minute = { algo: 'fixed-window', rate: 2, interval: '1m' } as const;
const define = {
  all: { ...minute, key: 'global' },
  address: minute,
  tenant: {
    ...minute,
    rate: 1,
    key: (context) => `tenant:${context.switchToRpc().getData<{ tenant: string }>().tenant}`,
  },
  late: { ...minute, rate: 1, key: 'global', phase: 'authenticated' },
  login: { ...minute, key: 'user', onMissingKey: 'refuse' },
  slots: { algo: 'concurrency', limit: 1, ttl: '30s', key: 'global' },
} satisfies Record<string, LimitDefinition>;

/** Redis is shared by all tests, so each run has names of its own for its messages. */
const prefix = freshPrefix();
const pattern = (name: string) => `${prefix}:${name}`;

@Injectable()
class ClosedGuard implements CanActivate {
  canActivate(): Promise<boolean> {
    return Promise.resolve(false);
  }
}

/** Lets some through unchecked, as guards of apps may. */
@Injectable()
class OpenGuard extends RateLimitGuard {
  override canActivate() {
    return true;
  }
}

class Handlers {
  @Get('http')
  @RateLimit('all')
  http() {}

  @MessagePattern(pattern('all'))
  @RateLimit('all')
  all(@RateLimitDecision() decision?: CheckResult) {
    return decision?.tightest.remaining;
  }

  @MessagePattern(pattern('address'))
  @RateLimit('address')
  byAddress() {
    return 'done';
  }

  @MessagePattern(pattern('tenant'))
  @RateLimit('tenant')
  byTenant() {
    return 'done';
  }

  @MessagePattern(pattern('late'))
  @RateLimit('late')
  late() {
    return 'done';
  }

  @MessagePattern(pattern('login'))
  @RateLimit('login')
  login() {}

  @MessagePattern(pattern('slow'))
  @RateLimit('slots')
  async slow() {
    work.reached++;
    await work.gate;
    return 'done';
  }

  @MessagePattern(pattern('broken'))
  @RateLimit('slots')
  broken() {
    throw new TypeError('a bug');
  }

  @MessagePattern(pattern('guarded'))
  @UseGuards(ClosedGuard)
  @RateLimit('slots')
  guarded() {}

  @MessagePattern(pattern('thrown'))
  thrown(): never {
    const refused = { allowed: false, limit: 'mine', quota: 1, remaining: 0, retryAfterMs: 1500 } as Decision;
    throw new RateLimitExceededException({ allowed: false, decisions: [refused], tightest: refused, delayMs: 0 });
  }

  @EventPattern(pattern('event'))
  @RateLimit('all')
  event(_data: unknown) {
    work.reached++;
  }
}

@Controller()
class BareController extends Handlers {}

@Controller({ scope: Scope.REQUEST })
class ScopedController extends Handlers {}

@Controller()
@UseGuards(RateLimitGuard)
class BoundController extends Handlers {}

/** A port that nobody listens on. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function optionsOf(transport: 'TCP' | 'Redis') {
  if (transport === 'TCP') {
    return { transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } } as const;
  }
  const { hostname, port } = new URL(process.env['TEST_REDIS_URL'] ?? '');
  return { transport: Transport.REDIS, options: { host: hostname, port: Number(port) } } as const;
}

let app: { close(): Promise<unknown> } | undefined;
let client: ClientProxy | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  work.leave();
  await client?.close();
  await app?.close();
});

interface Start {
  readonly controller: typeof Handlers;
  /** What the app is: a microservice alone, or one beside an HTTP server. */
  readonly kind: 'microservice' | { readonly inheritAppConfig: boolean };
  readonly guard?: false | 'custom';
  readonly guards?: readonly Provider[];
}

async function start(transport: 'TCP' | 'Redis', { controller, kind, guards = [], ...extras }: Start) {
  work.reached = 0;
  work.gate = new Promise((resolve) => (work.leave = resolve));
  const clock = new ManualClock();
  const testing = await Test.createTestingModule({
    controllers: [controller],
    providers: [...guards],
    imports: [RateLimitModule.forRoot({ store: new MemoryStore({ clock: clock.now }), define, ...extras })],
  }).compile();
  testing.useLogger(false);
  const options = await optionsOf(transport);
  if (kind === 'microservice') {
    const service = testing.createNestMicroservice<MicroserviceOptions>(options);
    app = service;
    await service.listen();
  } else {
    const hybrid: INestApplication = testing.createNestApplication();
    app = hybrid;
    hybrid.connectMicroservice<MicroserviceOptions>(options, kind);
    await hybrid.init();
    await hybrid.startAllMicroservices();
  }
  client = ClientProxyFactory.create(options);
  await client.connect();
  const proxy = client;
  const service = testing.get(LimiterService);
  return {
    clock,
    left: async (name: string, key = 'global') => (await service.for(name).peek(key)).remaining,
    /** The answer, or the error that the client is told. */
    ask: (name: string, data: object = {}): Promise<unknown> =>
      firstValueFrom(proxy.send<unknown>(pattern(name), data)).catch((error: unknown) => ({ error })),
    tell: (name: string) => firstValueFrom(proxy.emit(pattern(name), {}), { defaultValue: undefined }),
  };
}

/** What is told of a lease depends on how long leases were held. */
const aWhile = expect.any(Number) as unknown as number;

const refusal = (limits: string[], retryAfterMs: number) => ({
  error: {
    status: 'error',
    statusCode: 429,
    message: 'Too many requests',
    error: 'Too Many Requests',
    limits,
    retryAfterMs,
  },
});

const apps: [string, Start][] = [
  ['a microservice', { controller: BareController, kind: 'microservice' }],
  ['a hybrid app without inheritAppConfig', { controller: BareController, kind: { inheritAppConfig: false } }],
  ['a hybrid app with inheritAppConfig', { controller: BareController, kind: { inheritAppConfig: true } }],
  ['a hybrid app with @UseGuards(RateLimitGuard)', { controller: BoundController, kind: { inheritAppConfig: false } }],
  ['a hybrid app with both', { controller: BoundController, kind: { inheritAppConfig: true } }],
];

describe.each(['TCP', 'Redis'] as const)('over %s', (transport) => {
  describe.each(apps)('%s', (_, how) => {
    it('refuses with the data of an RpcException', async () => {
      const { ask, clock, left } = await start(transport, how);
      expect([await ask('all'), await ask('all')]).toEqual([1, 0]);
      clock.advanceMs(20_000);
      expect(await ask('all')).toEqual(refusal(['all'], 40_000));
      expect(await left('all')).toBe(0);
      clock.advanceMs(40_000);
      expect(await ask('all')).toBe(1);
    });

    it('counts by a function of the message', async () => {
      const { ask } = await start(transport, how);
      const tenants = ['one', 'two', 'one'];
      const answers: unknown[] = [];
      for (const tenant of tenants) answers.push(await ask('tenant', { tenant }));
      expect(answers).toEqual(['done', 'done', refusal(['tenant'], 60_000)]);
    });

    it('checks limits by user after the guards', async () => {
      const { ask } = await start(transport, how);
      expect([await ask('late'), await ask('late')]).toEqual(['done', refusal(['late'], 60_000)]);
      expect(await ask('login')).toMatchObject({ error: { status: 'error', statusCode: 401 } });
    });

    it('holds something until the handler ends or fails', async () => {
      const { ask, left } = await start(transport, how);
      const inside = ask('slow');
      await until(() => work.reached === 1);
      expect(await ask('slow')).toEqual(refusal(['slots'], aWhile));
      work.leave();
      expect(await inside).toBe('done');
      await until(async () => (await left('slots')) === 1);
      expect(await ask('broken')).toMatchObject({ error: { message: 'Internal server error' } });
      await until(async () => (await left('slots')) === 1);
    });

    it('holds nothing once a later guard has refused', async () => {
      const { ask, left } = await start(transport, how);
      for (let call = 0; call < 2; call++) {
        expect(await ask('guarded')).toMatchObject({ error: { message: 'Forbidden resource' } });
        await until(async () => (await left('slots')) === 1);
      }
    });

    it('holds something as long as the handler runs, though its client has left', async () => {
      const { ask, left } = await start(transport, how);
      void ask('slow');
      await until(() => work.reached === 1);
      await client?.close();
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect(await left('slots')).toBe(0);
      work.leave();
      await until(async () => (await left('slots')) === 1);
    });

    it('does not run the handler of an event too many', async () => {
      const { tell, ask, left } = await start(transport, how);
      for (let event = 0; event < 3; event++) await tell('event');
      await until(async () => (await left('all')) === 0);
      expect(await ask('all')).toEqual(refusal(['all'], 60_000));
      expect(work.reached).toBe(2);
    });
  });

  it.each<[string, Start['kind']]>([
    ['a microservice', 'microservice'],
    ['a hybrid app without inheritAppConfig', { inheritAppConfig: false }],
    ['a hybrid app with inheritAppConfig', { inheritAppConfig: true }],
  ])('%s charges a message once', async (_, kind) => {
    const { ask, left } = await start(transport, { controller: BareController, kind });
    expect(await ask('all')).toBe(1);
    expect(await left('all')).toBe(1);
  });

  it.each([false, true])('guards that the app binds for all routes check messages, inherited: %s', async (inherits) => {
    const extras = { guard: false, guards: [{ provide: APP_GUARD, useExisting: RateLimitGuard }] } as const;
    const kind = { inheritAppConfig: inherits };
    const { ask, left } = await start(transport, { controller: BareController, kind, ...extras });
    expect([await ask('all'), await left('all'), await ask('all')]).toEqual([1, 1, 0]);
    expect(await ask('all')).toEqual(refusal(['all'], aWhile));
    expect([await ask('late'), await ask('late')]).toEqual(['done', refusal(['late'], 60_000)]);
  });

  it("no message is limited with guard: 'custom', where nothing of the app reaches it", async () => {
    const kind = { inheritAppConfig: false };
    const { ask, left } = await start(transport, { controller: BareController, kind, guard: 'custom' });
    for (let message = 0; message < 3; message++) expect(await ask('tenant', { tenant: 'one' })).toBe('done');
    expect(await left('tenant', 'tenant:one')).toBe(1);
  });

  it('a subclass of the guard, bound by the app, decides alone', async () => {
    const extras = { guard: false, guards: [{ provide: APP_GUARD, useClass: OpenGuard }] } as const;
    const kind = { inheritAppConfig: true };
    const { ask, left } = await start(transport, { controller: BareController, kind, ...extras });
    for (let message = 0; message < 3; message++) expect(await ask('tenant', { tenant: 'one' })).toBe('done');
    expect(await left('tenant', 'tenant:one')).toBe(1);
  });
});

it('a controller that is made anew for each message is limited in a hybrid app', async () => {
  const { ask } = await start('TCP', { controller: ScopedController, kind: { inheritAppConfig: false } });
  expect([await ask('all'), await ask('all')]).toEqual([1, 0]);
  expect(await ask('all')).toEqual(refusal(['all'], aWhile));
  expect([await ask('late'), await ask('late')]).toEqual(['done', refusal(['late'], 60_000)]);
});

it('a route of a controller that handles messages is charged once', async () => {
  const http = await HttpApp.start('express', { controllers: [BareController], limits: { define } });
  app = http;
  expect(await http.statuses(3, '/http')).toEqual([200, 200, 429]);
});

it('each app of a process checks messages by its own limits, also if one has none', async () => {
  const kind = { inheritAppConfig: false };
  const one = await start('TCP', { controller: BareController, kind });
  const [firstApp, firstClient] = [app!, client!];
  const options = await optionsOf('TCP');
  const testing = await Test.createTestingModule({ controllers: [BareController] }).compile();
  testing.useLogger(false);
  const service = testing.createNestMicroservice<MicroserviceOptions>(options);
  await service.listen();
  const proxy = ClientProxyFactory.create(options);
  try {
    for (let message = 0; message < 3; message++) {
      expect(await firstValueFrom(proxy.send<unknown>(pattern('tenant'), { tenant: 'one' }))).toBe('done');
    }
  } finally {
    await proxy.close();
    await service.close();
  }
  const other = await start('TCP', { controller: BareController, kind });
  try {
    for (const { ask } of [one, other]) {
      expect(await ask('tenant', { tenant: 'one' })).toBe('done');
      expect(await ask('tenant', { tenant: 'one' })).toEqual(refusal(['tenant'], 60_000));
    }
  } finally {
    await firstClient.close();
    await firstApp.close();
  }
});

it('a refusal that a handler throws is told as one of the guard', async () => {
  const { ask } = await start('TCP', { controller: BareController, kind: 'microservice' });
  expect(await ask('thrown')).toEqual(refusal(['mine'], 1500));
});

describe('the address of a sender', () => {
  it('is that of its connection over TCP', async () => {
    const { ask, left } = await start('TCP', { controller: BareController, kind: 'microservice' });
    expect([await ask('address'), await ask('address')]).toEqual(['done', 'done']);
    expect(await ask('address')).toEqual(refusal(['address'], 60_000));
    expect(await left('address', 'ip:127.0.0.1')).toBe(0);
  });

  it('is unknown over Redis, so a limit by address does not apply, and one warning says so', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const { ask } = await start('Redis', { controller: BareController, kind: 'microservice' });
    for (let message = 0; message < 3; message++) expect(await ask('address')).toBe('done');
    expect(warn.mock.calls.filter(([text]) => String(text).includes("limit 'address' does not apply"))).toHaveLength(1);
  });
});

/** Hands one context to all messages. */
class OneContextServer extends Server implements CustomTransportStrategy {
  private readonly context = {};

  listen(listening: () => void) {
    listening();
  }
  close() {}
  on() {}
  unwrap<T>() {
    return undefined as T;
  }
  async deliver(name: string): Promise<unknown> {
    const answer = (await this.getHandlerByPattern(pattern(name))!({}, this.context)) as Observable<unknown>;
    return lastValueFrom(this.transformToObservable(answer)).catch((error: unknown) => error);
  }
}

it('a transport that hands one context to all messages limits each of them', async () => {
  work.gate = new Promise((resolve) => (work.leave = resolve));
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ define })],
    controllers: [BareController],
  }).compile();
  testing.useLogger(false);
  const strategy = new OneContextServer();
  const microservice = testing.createNestMicroservice<CustomStrategy>({ strategy });
  [client, app] = [undefined, microservice];
  await microservice.listen();
  const answers: unknown[] = [];
  while (answers.length < 4) answers.push(await strategy.deliver('all'));
  expect(answers).toEqual([1, 0, ...Array<unknown>(2).fill(expect.objectContaining({ limits: ['all'] }))]);
  const slow = [strategy.deliver('slow'), strategy.deliver('slow')];
  expect(await Promise.race(slow)).toEqual(expect.objectContaining({ limits: ['slots'] }));
  work.leave();
  expect(await Promise.all(slow)).toContain('done');
  expect(await strategy.deliver('slow')).toBe('done');
});

/** A strategy whose messages come by HTTP, as those of a server of tools do: its context has the request. */
class RequestServer extends OneContextServer {
  override readonly transportId = Symbol.for('messages by HTTP');

  ask(tool: string, request: object): Promise<unknown> {
    const handler = this.getHandlerByPattern(JSON.stringify({ tool }))!;
    const answer = handler({}, { getRawRequest: () => request }) as Promise<Observable<unknown>>;
    return answer.then((stream) => lastValueFrom(stream)).catch((error: unknown) => error);
  }
}

it('a message that came by HTTP counts for the client of its request', async () => {
  const viaHttp = Symbol.for('messages by HTTP') as unknown as Transport;
  @Controller()
  class Tools {
    @MessagePattern({ tool: 'address' }, viaHttp)
    @RateLimit('address')
    byAddress() {
      return 'done';
    }

    @MessagePattern({ tool: 'key' }, viaHttp)
    @RateLimit({ ...minute, rate: 1, key: 'header:x-api-key' })
    byHeader() {
      return 'done';
    }

    @MessagePattern({ tool: 'user' }, viaHttp)
    @RateLimit({ ...minute, rate: 1, key: 'user' })
    byUser() {
      return 'done';
    }
  }
  const imports = [RateLimitModule.forRoot({ define })];
  const testing = await Test.createTestingModule({ imports, controllers: [Tools] }).compile();
  testing.useLogger(false);
  const strategy = new RequestServer();
  const microservice = testing.createNestMicroservice<CustomStrategy>({ strategy });
  [client, app] = [undefined, microservice];
  await microservice.listen();
  const refused = expect.objectContaining({ statusCode: 429 }) as unknown;
  const ask = async (tool: string, ...requests: object[]) => {
    const answers: unknown[] = [];
    for (const request of requests) answers.push(await strategy.ask(tool, request));
    return answers;
  };
  const [one, other] = [{ ip: '198.51.100.1' }, { socket: { remoteAddress: '198.51.100.2' } }];
  expect(await ask('address', one, one, one, other)).toEqual(['done', 'done', refused, 'done']);
  const keys = ['a', 'a', 'b'].map((key) => ({ ...one, headers: { 'x-api-key': key } }));
  expect(await ask('key', ...keys)).toEqual(['done', refused, 'done']);
  const users = [1, 1, 2].map((id) => ({ ...one, user: { id } }));
  expect(await ask('user', ...users)).toEqual(['done', refused, 'done']);
});
