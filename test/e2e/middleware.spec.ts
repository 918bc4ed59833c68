import type { Server } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Post,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import {
  type KeyResolver,
  type LimitDefinition,
  MemoryStore,
  RateLimit,
  RateLimitConfigError,
  RateLimitDecision,
  RateLimitExceededException,
  RateLimitMiddleware,
  rateLimitMiddleware,
  type RateLimitModuleOptions,
  RateLimitStoreError,
  type RequestDecision,
  type RequestReader,
  SkipRateLimit,
} from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { variants } from '../support/tier.js';
import { adapters, everyAdapter, HttpApp, startUp } from './http-app.js';
import { atPlace } from '../support/limits/at-place.js';

const flood: LimitDefinition = { name: 'flood', algo: 'fixed-window', rate: 2, interval: '10s', phase: 'middleware' };
const busy: LimitDefinition = { ...flood, name: 'busy', rate: 9 };
const guarded: LimitDefinition = { name: 'guarded', algo: 'fixed-window', rate: 9, interval: '10s' };
const KEYS =
  "expected 'ip', 'global', 'header:<name>', a function or a class that implements KeyResolver in phase 'middleware'";
const perKey: LimitDefinition = { ...flood, name: 'per-key', key: 'header:x-key', onMissingKey: 'refuse' };

/** What reached a handler. */
let handled: string[] = [];
/** What a request waits for in its handler. */
let gate: () => Promise<void>;
let enter: () => void;
let leave: () => void;

@Controller()
class RoutesController {
  @Get()
  root() {
    handled.push('root');
  }

  @Get('decision')
  @RateLimit({ name: 'own', algo: 'fixed-window', rate: 7, interval: '10s' })
  decision(@RateLimitDecision() decision?: RequestDecision) {
    return decision;
  }

  @Post('body')
  body(@Body() body: unknown) {
    handled.push('body');
    return body;
  }

  @Get('free')
  @SkipRateLimit()
  free() {}

  @Get('near')
  @RateLimit({ name: 'flood', algo: 'fixed-window', rate: 5, interval: '10s' })
  near(@RateLimitDecision() decision?: RequestDecision) {
    return decision;
  }

  @Get('chosen')
  @RateLimit(() => ({ name: 'flood', algo: 'fixed-window', rate: 5, interval: '10s' }))
  chosen(@RateLimitDecision() decision?: RequestDecision) {
    return decision;
  }

  @Get('settled')
  async settled(@RateLimitDecision() decision: RequestDecision) {
    await decision.settle(4, 'busy');
  }

  @Get('skipping-gate')
  @SkipRateLimit()
  skippingGate() {
    return gate();
  }

  @Get('gate')
  gate() {
    return gate();
  }

  @Get('failing')
  failing() {
    throw new Error('broken');
  }
}

@Module({})
class WithMiddleware implements NestModule {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(RateLimitMiddleware).forRoutes('{*path}');
  }
}

@Catch(RateLimitExceededException)
class OwnFilter implements ExceptionFilter {
  constructor(private readonly host: HttpAdapterHost) {}

  catch({ result }: RateLimitExceededException, host: ArgumentsHost) {
    this.host.httpAdapter.reply(host.switchToHttp().getResponse(), { own: result.tightest.limit }, 420);
  }
}

const withoutAnything = () => undefined;
const asFunction = (app: INestApplication) => void app.use(rateLimitMiddleware(app));

/** How the middleware runs: by a module, or as a function before everything else. */
const ways: [string, Type[], (app: INestApplication) => void][] = [
  ['a module', [WithMiddleware], withoutAnything],
  ['app.use', [], asFunction],
];
/** Each adapter with each way. */
const kinds = variants(everyAdapter.flatMap((framework) => ways.map((way) => [framework, ...way] as const)));

interface EarlyRequest {
  readonly originalUrl: string;
  readonly headers: Partial<Record<string, string>>;
  readonly body?: unknown;
}
const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<EarlyRequest>();

interface FastifyRequestOfTest {
  readonly account: string;
  readonly routeOptions: { readonly url?: string };
}

const told = (response: Response) => response.headers.get('ratelimit');

const wants = (message: string) => (error: unknown) => {
  expect(error).toBeInstanceOf(RateLimitConfigError);
  expect((error as Error).message).toContain(message);
};

describe.each(kinds)('the middleware over %s by %s', (framework, _, imports, configure) => {
  let app: HttpApp | undefined;

  beforeEach(() => {
    handled = [];
  });

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  const start = async (limits: RateLimitModuleOptions) =>
    (app = await HttpApp.start(framework, { controllers: [RoutesController], imports, limits, configure }));

  it('refuses as the guard does, on any path', async () => {
    const { url, clock } = await start({ limits: [flood, guarded] });
    const get = (path: string) => fetch(url + path);
    expect(told(await get('/'))).toBe('"flood";r=1;t=10, "guarded";r=8;t=10');
    const missing = await get('/nowhere');
    expect(missing.status).toBe(404);
    expect(told(missing)).toBe('"flood";r=0;t=10');
    const refused = await get('/');
    expect(refused.status).toBe(429);
    expect(told(refused)).toBe('"flood";r=0;t=10');
    expect(refused.headers.get('ratelimit-policy')).toBe('"flood";q=2;w=10');
    expect(refused.headers.get('retry-after')).toBe('10');
    expect(refused.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await refused.json()).toEqual({
      statusCode: 429,
      message: 'Too many requests',
      error: 'Too Many Requests',
      limits: ['flood'],
    });
    expect(handled).toEqual(['root']);
    clock.advanceMs(10_000);
    expect(told(await get('/'))).toBe('"flood";r=1;t=10, "guarded";r=8;t=10');
  });

  it('tells handlers of what it checked, and lets them settle it', async () => {
    const { url } = await start({ limits: [busy, guarded] });
    const decision = (await (await fetch(`${url}/decision`)).json()) as RequestDecision;
    expect(decision.decisions.map(({ limit, remaining }) => [limit, remaining])).toEqual([
      ['busy', 8],
      ['guarded', 8],
      ['own', 6],
    ]);
    expect(decision.tightest.limit).toBe('own');
    await fetch(`${url}/settled`);
    expect(told(await fetch(`${url}/`))).toBe('"busy";r=3;t=10, "guarded";r=6;t=10');
  });

  it('holds for routes that skip or replace its limits, whose own hold beside it', async () => {
    const { url } = await start({ limits: [busy] });
    expect(told(await fetch(`${url}/free`))).toBe('"busy";r=8;t=10');
    const limits = [{ ...flood, rate: 4 }];
    await app?.close();
    const replacing = await start({ limits });
    for (const [path, remaining] of [
      ['near', 4],
      ['near', 3],
      ['chosen', 4],
      ['chosen', 3],
    ] as const) {
      const response = await fetch(`${replacing.url}/${path}`);
      expect(told(response)).toBe(`"flood";r=${remaining};t=10`);
      const { decisions } = (await response.json()) as RequestDecision;
      expect(decisions.map(({ quota }) => quota)).toEqual([5]);
    }
    expect((await fetch(`${replacing.url}/near`)).status).toBe(429);
  });

  it('counts by a header, and refuses requests without it if told so', async () => {
    const { url } = await start({ limits: [perKey] });
    const status = async (key?: string) =>
      (await fetch(`${url}/`, { headers: key === undefined ? {} : { 'x-key': key } })).status;
    expect(await status()).toBe(400);
    expect([await status('a'), await status('b'), await status('a'), await status('a')]).toEqual([200, 200, 200, 429]);
  });

  it('counts by functions of the request, which run before its body is read', async () => {
    const seen: unknown[] = [];
    const { url } = await start({
      limits: [
        {
          ...flood,
          key: async (context) => {
            const request = requestOf(context);
            seen.push([context.getClass(), context.getHandler(), request.body]);
            await Promise.resolve();
            return request.headers.authorization?.replace(/^Bearer /, '');
          },
          cost: (context) => Number(requestOf(context).headers['x-cost'] ?? 1),
          skip: (context) => requestOf(context).originalUrl.startsWith('/free'),
          onMissingKey: 'refuse',
        },
      ],
    });
    const send = async (token?: string, path = '/body', cost = 1) => {
      const headers = { 'content-type': 'application/json', 'x-cost': String(cost) };
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const init = { method: 'POST', headers: { ...headers, ...authorization }, body: '{"a":1}' };
      return fetch(url + path, init);
    };
    const first = await send('a');
    expect([first.status, await first.json(), told(first)]).toEqual([201, { a: 1 }, '"flood";r=1;t=10']);
    expect([(await send('a', '/body', 2)).status, (await send('a')).status, (await send('a')).status]).toEqual([
      429, 201, 429,
    ]);
    expect([(await send('b')).status, (await send()).status]).toEqual([201, 400]);
    // Skipped by its path: the limit does not apply, not even where the guard runs.
    expect([(await fetch(`${url}/free`)).status, told(await fetch(`${url}/free`))]).toEqual([200, null]);
    expect(handled).toEqual(['body', 'body', 'body']);
    // With Express, Nest parses bodies before it runs the middlewares of modules.
    if (framework === 'fastify' || imports.length === 0) {
      expect(seen).toEqual(seen.map(() => [null, null, undefined]));
    }
  });

  it('counts by a KeyResolver', async () => {
    @Injectable()
    class Tenants implements KeyResolver {
      async resolve(context: ExecutionContext) {
        const { host } = requestOf(context).headers;
        return Promise.resolve(`${host === undefined ? '' : 'tenant'}:${requestOf(context).headers['x-key']}`);
      }
    }
    app = await HttpApp.start(framework, {
      controllers: [RoutesController],
      imports,
      limits: { limits: [{ ...flood, rate: 1, key: Tenants }] },
      providers: [Tenants],
      configure,
    });
    expect(await app.statuses(2, '/', { 'x-key': 'a' })).toEqual([200, 429]);
    expect(await app.statuses(2, '/', { 'x-key': 'b' })).toEqual([200, 429]);
  });

  it('answers 500 if a function fails, and counts nothing', async () => {
    const { url } = await start({
      limits: [{ ...flood, key: (context) => requestOf(context).headers['x-key']!.trim() }],
    });
    expect((await fetch(`${url}/`)).status).toBe(500);
    expect(told(await fetch(`${url}/`, { headers: { 'x-key': 'a' } }))).toBe('"flood";r=1;t=10');
    expect(handled).toEqual(['root']);
  });

  it('gives functions the request, and answers with problem details', async () => {
    const { url } = await start({
      problem: true,
      limits: [
        {
          ...flood,
          message: (context) => `not ${context.switchToHttp().getRequest<{ method: string }>().method}`,
          body: (_, { decisions }, body) => ({ ...body, decisions: decisions.length }),
        },
      ],
    });
    await fetch(`${url}/`);
    await fetch(`${url}/`);
    const refused = await fetch(`${url}/`);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await refused.json()).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota Exceeded',
      status: 429,
      detail: 'not GET',
      'violated-policies': ['flood'],
      decisions: 1,
    });
  });

  it('answers 503 if the store fails and it says so', async () => {
    const store = new MemoryStore();
    store.check = () => Promise.reject(new RateLimitStoreError('no answer'));
    const { url } = await start({ store, problem: true, limits: [{ ...flood, onStoreError: 'deny' }] });
    const response = await fetch(`${url}/`);
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  });

  it('leaves refusals to exception filters', async () => {
    app = await HttpApp.start(framework, {
      controllers: [RoutesController],
      imports,
      limits: { limits: [{ ...flood, rate: 1 }] },
      providers: [{ provide: 'APP_FILTER', useClass: OwnFilter }],
      configure,
    });
    await app.get('/');
    const refused = await app.get('/');
    expect(refused.status).toBe(420);
    expect(refused.headers.get('retry-after')).toBe('10');
    expect(await refused.json()).toEqual({ own: 'flood' });
  });

  it('gives back units of requests that do not count in the end', async () => {
    const { url } = await start({ limits: [{ ...flood, rate: 1, count: 'failed' }] });
    for (let request = 0; request < 3; request++) expect((await fetch(`${url}/`)).status).toBe(200);
    expect((await fetch(`${url}/failing`)).status).toBe(500);
    expect((await fetch(`${url}/`)).status).toBe(429);
  });

  it('holds places until responses have ended', async () => {
    const { url } = await start({
      limits: [{ name: 'places', algo: 'concurrency', limit: 1, ttl: '1m', phase: 'middleware' }],
    });
    const entered = new Promise<void>((resolve) => (enter = resolve));
    const left = new Promise<void>((resolve) => (leave = resolve));
    gate = () => (enter(), left);
    const first = fetch(`${url}/gate`);
    await entered;
    expect((await fetch(`${url}/`)).status).toBe(429);
    leave();
    expect((await first).status).toBe(200);
    expect((await fetch(`${url}/`)).status).toBe(200);
  });

  it.each(['/gate', '/skipping-gate'])('%s holds its place while it runs, though its client has left', async (path) => {
    const { url } = await start({
      limits: [{ name: 'places', algo: 'concurrency', limit: 1, ttl: '1m', phase: 'middleware' }],
    });
    const entered = new Promise<void>((resolve) => (enter = resolve));
    const left = new Promise<void>((resolve) => (leave = resolve));
    const server = app?.nest.getHttpServer() as Server;
    const closed = new Promise<void>((resolve) =>
      server.once('request', (_, response) => response.once('close', () => resolve())),
    );
    gate = () => (enter(), left);
    const leaving = new AbortController();
    const first = fetch(url + path, { signal: leaving.signal });
    await entered;
    leaving.abort();
    await expect(first).rejects.toThrow('abort');
    await closed;
    expect((await fetch(`${url}/nowhere`)).status).toBe(429);
    leave();
    await until(async () => (await fetch(`${url}/nowhere`)).status === 404);
  });

  it('leaves the limits of other phases to the guard', async () => {
    const { url } = await start({ limits: [guarded] });
    const missing = await fetch(`${url}/nowhere`);
    expect(missing.status).toBe(404);
    expect(told(missing)).toBeNull();
    expect(told(await fetch(`${url}/`))).toBe('"guarded";r=8;t=10');
  });
});

describe.each(adapters)('the middleware over %s', (framework) => {
  let app: HttpApp | undefined;

  beforeEach(() => {
    handled = [];
  });

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it('counts before bodies are parsed, as a function', async () => {
    app = await HttpApp.start(framework, {
      controllers: [RoutesController],
      limits: { limits: [flood] },
      configure: asFunction,
    });
    const send = () =>
      fetch(`${app?.url}/body`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{ wrong' });
    expect([(await send()).status, (await send()).status, (await send()).status]).toEqual([400, 400, 429]);
    expect(handled).toEqual([]);
  });

  it('counts once if it runs twice', async () => {
    app = await HttpApp.start(framework, {
      controllers: [RoutesController],
      imports: [WithMiddleware],
      limits: { limits: [flood] },
      configure: asFunction,
    });
    expect(await app.statuses(3, '/')).toEqual([200, 200, 429]);
  });

  it('leaves its limits to the guard where it does not run', async () => {
    app = await HttpApp.start(framework, { controllers: [RoutesController], limits: { limits: [flood] } });
    expect(await app.statuses(3, '/nowhere')).toEqual([404, 404, 404]);
    expect(await app.statuses(3, '/free')).toEqual([200, 200, 200]);
    expect(await app.statuses(3, '/')).toEqual([200, 200, 429]);
  });

  it('asks the store once for each phase', async () => {
    const store = new MemoryStore();
    const asked: string[][] = [];
    const check = store.check.bind(store);
    store.check = (checks) => {
      asked.push(checks.flatMap(({ entries }) => entries.map(({ limit }) => limit.name)));
      return check(checks);
    };
    const limits = { store, limits: [flood, busy, guarded] };
    app = await HttpApp.start(framework, { controllers: [RoutesController], limits, configure: asFunction });
    await app.get('/');
    expect(asked).toEqual([['flood', 'busy'], ['guarded']]);
    await store.close();
  });
});

/** Finds out who sends a request, in a hook. */
const authenticate = (app: INestApplication) => {
  (app as NestFastifyApplication)
    .getHttpAdapter()
    .getInstance()
    .addHook('onRequest', (request, _, done) => {
      request.headers['x-account'] = request.headers['x-key'] === 'wrong' ? undefined : 'one';
      done();
    });
};

describe('the middleware beside hooks of Fastify', () => {
  const byAccount: LimitDefinition = {
    ...flood,
    key: (context) => context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers['x-account'],
    onMissingKey: 'refuse',
  };

  it('runs after the onRequest hooks that were added before the app was started', async () => {
    const app = await HttpApp.start('fastify', {
      controllers: [RoutesController],
      limits: { limits: [byAccount] },
      configure: (nest) => {
        authenticate(nest);
        asFunction(nest);
      },
    });
    expect(await app.statuses(1, '/', { 'x-key': 'wrong' })).toEqual([400]);
    expect(await app.statuses(3, '/', { 'x-key': 'right' })).toEqual([200, 200, 429]);
    await app.close();
  });

  it('can be a hook itself, whose functions get the request of Fastify', async () => {
    const seen: unknown[] = [];
    const app = await HttpApp.start('fastify', {
      controllers: [RoutesController],
      limits: {
        limits: [
          {
            ...flood,
            key: (context) => {
              const { account, routeOptions } = context.switchToHttp().getRequest<FastifyRequestOfTest>();
              seen.push(routeOptions.url);
              return account;
            },
          },
        ],
      },
      configure: (nest) => {
        const fastify = (nest as NestFastifyApplication).getHttpAdapter().getInstance();
        fastify.decorateRequest('account', '');
        fastify.addHook('onRequest', (request, _, done) => {
          (request as unknown as { account: string }).account = 'one';
          done();
        });
        const limit = rateLimitMiddleware(nest);
        fastify.addHook('onRequest', (request, reply, done) => void limit(request, reply, done));
      },
    });
    const responses = [await app.get('/'), await app.get('/nowhere'), await app.get('/')];
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 429]);
    expect(told(responses[2]!)).toBe('"flood";r=0;t=10');
    expect(await responses[2]!.json()).toMatchObject({ limits: ['flood'] });
    expect(seen).toEqual(['/', undefined, '/']);
    await app.close();
  });
});

describe('phase: middleware', () => {
  it.each<[Partial<LimitDefinition>, string]>([
    [{ key: 'user' }, `limits[0].key: ${KEYS}, received 'user'`],
    [{ key: 7 as never }, `limits[0].key: ${KEYS}, received 7`],
    [{ skip: true as never }, 'limits[0].skip: expected a function of the context, received true'],
    [{ perRoute: true }, "limits[0].perRoute: expected false in phase 'middleware', received true"],
    [{ within: 'team' }, "limits[0].within: expected nothing in phase 'middleware', received 'team'"],
  ])('refuses what needs a route or a user: %j', async (options, message) => {
    await startUp({ limits: [{ ...flood, ...options } as LimitDefinition] }).catch(wants(message));
    expect.assertions(2);
  });

  it('hands its own exception on, even if a reader of HTTP has another for the guard', async () => {
    const reader: RequestReader = {
      transport: 'http',
      read: (context) => ({ request: context.switchToHttp().getRequest<object>() }),
      refuse: () => new HttpException('of the reader', 418),
    };
    const app = await HttpApp.start('express', {
      controllers: [RoutesController],
      imports: [WithMiddleware],
      limits: { limits: [flood, { ...guarded, rate: 1 }], readers: [reader] },
    });
    expect(await app.statuses(3, '/')).toEqual([200, 418, 429]);
    await app.close();
  });

  it('is for limits of the module alone', async () => {
    @Controller()
    class NearController {
      @Get()
      @RateLimit(flood)
      read() {}
    }
    const message =
      "phase: expected guard or authenticated (middleware only in the module's 'limits'), received 'middleware'";
    await startUp({}, [NearController]).catch(wants(atPlace('@RateLimit on NearController.read', message)));
    await startUp({ define: { flood } }).catch(wants(atPlace('define.flood', message)));
    expect.assertions(4);
  });
});
