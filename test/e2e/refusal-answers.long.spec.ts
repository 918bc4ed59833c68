import type { AddressInfo, Server } from 'node:net';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Controller, type ExecutionContext, Get, Injectable, Logger, Module, UseGuards } from '@nestjs/common';
import { GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import { ClientProxyFactory, MessagePattern, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { lastValueFrom } from 'rxjs';
import {
  type CheckResult,
  type HeaderFormatter,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitExceededException,
  RateLimitGuard,
  type RateLimitModuleOptions,
  type RefusalResolver,
  type RefusalResponse,
} from '../../lib/index.js';
import { adapters, HttpApp, type AppOptions } from './http-app.js';
import { connect } from './websocket-clients.js';

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  budget: { ...minute, rate: 1, status: 402, message: 'Out of budget' },
  closed: { ...minute, rate: 1, interval: '1h', status: 403 },
  secret: { ...minute, rate: 1, hidden: true },
  silent: { ...minute, rate: 1, retryAfter: false },
  guesses: { ...minute, rate: 1, hidden: true, retryAfter: false, key: 'global' },
  drops: { algo: 'token-bucket', rate: 1, interval: '1m', hidden: true },
  shown: { ...minute, rate: 5 },
  watched: { ...minute, rate: 1, status: 403, mode: 'shadow' },
} satisfies Record<string, LimitDefinition>;

@Controller()
class Routes {
  constructor(private readonly limiters: LimiterService) {}

  @Get('budget')
  @RateLimit('budget')
  budget() {}

  @Get('both')
  @RateLimit('budget', 'closed', 'watched')
  both() {}

  @Get('secret')
  @RateLimit('secret')
  secret() {}

  @Get('beside')
  @RateLimit('secret', 'shown')
  beside() {}

  @Get('silent')
  @RateLimit('silent')
  silent() {}

  @Get('thrown')
  async thrown() {
    const result = await this.limiters.check(
      ['budget', 'guesses'].map((limit) => ({ limit, key: `code of ${limit}`, cost: 2 })),
    );
    throw new RateLimitExceededException(result);
  }

  @Get('thrown/hidden')
  async thrownOfHidden() {
    throw new RateLimitExceededException(await this.limiters.check([{ limit: 'guesses', key: 'code', cost: 2 }]));
  }

  /** Decisions that another part of the app has copied. */
  @Get('thrown/copies')
  async thrownOfCopies() {
    const result = await this.limiters.check(['guesses', 'shown'].map((limit) => ({ limit, key: 'code', cost: 9 })));
    const decisions = result.decisions.map((decision) => ({ ...decision }));
    throw new RateLimitExceededException({ ...result, decisions, tightest: decisions[0]! });
  }

  @Get('thrown/names')
  async thrownWithNames() {
    const result = await this.limiters.check([{ limit: 'guesses', key: 'code', cost: 2 }]);
    throw new RateLimitExceededException(result, 'No more guesses', ['guesses']);
  }

  @Get('thrown/reservation')
  async thrownOfReservation() {
    const refused = await this.limiters.for('drops').reserve('code', { cost: 2 });
    const { allowed, delayMs } = refused;
    throw new RateLimitExceededException({ allowed, decisions: [refused], tightest: refused, delayMs });
  }
}

function containsItself(): object {
  const body: Record<string, unknown> = {};
  return Object.assign(body, { body });
}

let app: HttpApp | undefined;
afterEach(async () => {
  jest.restoreAllMocks();
  await app?.close();
  app = undefined;
});

const told = async (response: Response) => ({
  status: response.status,
  retryAfter: response.headers.get('retry-after'),
  limits: response.headers.get('ratelimit'),
  body: await response.json(),
});

/** What the second request gets. */
const second = async (path: string) => {
  await app!.get(path);
  return told(await app!.get(path));
};

/** Leaves out how much is left. */
const withoutRemaining = (text: string | null | undefined) => text?.replace(/r=\d|^[34]$/, 'some');

describe.each(adapters)('refusals over %s', (framework) => {
  const start = async (limits: RateLimitModuleOptions = {}, more: AppOptions = {}): Promise<HttpApp> =>
    (app = await HttpApp.start(framework, { controllers: [Routes], ...more, limits: { define, ...limits } }));
  it('have the status of their limit', async () => {
    await start();
    expect(await second('/budget')).toEqual({
      status: 402,
      retryAfter: '60',
      limits: '"budget";r=0;t=60',
      body: { statusCode: 402, message: 'Out of budget', error: 'Payment Required', limits: ['budget'] },
    });
  });

  it('have that status in problem details, too', async () => {
    await start({ problem: true });
    expect((await second('/budget')).body).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota Exceeded',
      status: 402,
      detail: 'Out of budget',
      'violated-policies': ['budget'],
    });
  });

  it('of several limits have the status of the one with the longest wait, and never that of a shadow', async () => {
    await start();
    expect(await second('/both')).toMatchObject({
      status: 403,
      retryAfter: '3600',
      body: { statusCode: 403, limits: ['budget', 'closed'] },
    });
  });

  it('of a hidden limit name none, and say when to come back', async () => {
    await start();
    const first = await app!.get('/secret');
    expect([...first.headers.keys()].filter((name) => name.includes('limit'))).toEqual([]);
    expect(await told(await app!.get('/secret'))).toEqual({
      status: 429,
      retryAfter: '60',
      limits: null,
      body: { statusCode: 429, message: 'Too many requests', error: 'Too Many Requests', limits: [] },
    });
  });

  it.each<[string, Record<string, string | null>]>([
    ['draft-8', { 'ratelimit-policy': '"shown";q=5;w=60', ratelimit: '"shown";r=3;t=60' }],
    ['draft-6', { 'ratelimit-policy': '5;w=60', 'ratelimit-remaining': '3' }],
    ['legacy', { 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '4' }],
  ])('describe the others in %s', async (headers, expected) => {
    await start({ headers: headers as never });
    await app!.get('/beside');
    app!.clock.advance(1);
    const response = await app!.get('/beside');
    expect(response.status).toBe(429);
    const found = Object.keys(expected).map((name) => [name, response.headers.get(name)]);
    expect(found.map(([, value]) => withoutRemaining(value))).toEqual(Object.values(expected).map(withoutRemaining));
    expect(await response.json()).toMatchObject({ limits: [] });
  });

  it('say nothing of the wait where the limit or the module does not', async () => {
    await start();
    expect(await second('/silent')).toMatchObject({ status: 429, retryAfter: null });
    await app!.close();
    await start({ retryAfter: false });
    expect(await second('/budget')).toMatchObject({ status: 402, retryAfter: null });
  });

  it('that code throws have the status of their limit, and name no hidden one', async () => {
    await start();
    expect(await told(await app!.get('/thrown'))).toMatchObject({
      status: 402,
      retryAfter: null,
      body: { statusCode: 402, message: 'Out of budget', limits: ['budget'] },
    });
    expect(await told(await app!.get('/thrown/hidden'))).toMatchObject({
      status: 429,
      retryAfter: null,
      limits: null,
      body: { limits: [] },
    });
  });

  it('that code throws with a reservation name no hidden limit', async () => {
    await start();
    const answer = await told(await app!.get('/thrown/reservation'));
    expect(answer).toMatchObject({ status: 429, limits: null, body: { limits: [] } });
  });

  it('that code throws with copies of decisions name no hidden limit, unless code names it', async () => {
    await start();
    expect(await told(await app!.get('/thrown/copies'))).toMatchObject({ status: 429, body: { limits: ['shown'] } });
    const named = await told(await app!.get('/thrown/names'));
    expect(named).toMatchObject({ body: { message: 'No more guesses', limits: ['guesses'] } });
  });

  it('give header functions the rate and the request', async () => {
    const asked: unknown[] = [];
    const headers: HeaderFormatter = (result, limits, context) => {
      asked.push(limits);
      return {
        'X-Left': String(result.tightest.remaining),
        'X-Path': context.switchToHttp().getRequest<{ url: string }>().url,
      };
    };
    const bucket: LimitDefinition = { name: 'b', algo: 'token-bucket', rate: 5, interval: '10s', burst: 9 };
    await start({ headers, limits: [bucket, { name: 's', algo: 'concurrency', limit: 3, ttl: '1m' }] });
    const response = await app!.get('/secret?x=1');
    expect([response.headers.get('x-left'), response.headers.get('x-path')]).toEqual(['2', '/secret?x=1']);
    expect(asked).toEqual([
      [
        {
          name: 'b',
          algo: 'token-bucket',
          quota: 9,
          quotaUnit: 'requests',
          windowMs: 18_000,
          shadow: false,
          rate: 5,
          interval: '10s',
          intervalMs: 10_000,
          burst: 9,
        },
        { name: 's', algo: 'concurrency', quota: 3, quotaUnit: 'concurrent-requests', windowMs: 60_000, shadow: false },
      ],
    ]);
  });

  describe('made by a resolver', () => {
    @Injectable()
    class Prices {
      readonly upgrade = Promise.resolve('https://example.com/upgrade');
    }
    @Injectable()
    class Upgrade implements RefusalResolver {
      constructor(private readonly prices: Prices) {}
      async resolve(_: ExecutionContext, { tightest }: CheckResult, usual: RefusalResponse) {
        const headers = { Link: `<${await this.prices.upgrade}>; rel="payment"` };
        return { status: 402, headers, body: { ...usual.body, plan: tightest.limit } };
      }
    }
    @Module({ providers: [Prices, Upgrade] })
    class PricesModule {}

    it('are what an injectable class returns', async () => {
      await start({ answer: Upgrade }, { imports: [PricesModule] });
      await app!.get('/silent');
      const response = await app!.get('/silent');
      expect([response.status, response.headers.get('link')]).toEqual([
        402,
        '<https://example.com/upgrade>; rel="payment"',
      ]);
      expect(await response.json()).toMatchObject({ plan: 'silent', limits: ['silent'] });
      expect((await app!.get('/thrown')).status).toBe(402);
    });

    it('have a body that names another status', async () => {
      await start({ answer: () => ({ status: 503 }) });
      expect(await second('/silent')).toMatchObject({
        status: 503,
        body: { statusCode: 503, error: 'Service Unavailable', message: 'Too many requests' },
      });
    });

    it.each<[string, () => unknown]>([
      [
        'throws',
        () => {
          throw new Error('no prices');
        },
      ],
      ['rejects', () => Promise.reject(new Error('no prices'))],
      ['never answers', () => new Promise(() => undefined)],
      ['returns a text', () => 'no'],
      ['returns another status', () => ({ status: 200 })],
      ['misspells a part', () => ({ statusCode: 402 })],
      ['returns a body that contains itself', () => ({ body: containsItself() })],
      ['returns a body with a BigInt', () => ({ body: { price: 1n } })],
      ['returns a header of two lines', () => ({ headers: { 'x-a': 'a\r\nb' } })],
    ])('are the usual ones, and the log says so once, if it %s', async (_, answer) => {
      const errors = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
      await start({ answer: answer as never, resolveTimeout: 50 });
      for (let call = 0; call < 2; call++) expect(await second('/budget')).toMatchObject({ status: 402 });
      expect(errors.mock.calls).toEqual([
        ["the function 'answer' of limit 'budget' failed, so the rejection has its default form", expect.any(String)],
      ]);
    });
  });

  it('are in the OpenAPI document by their status, unless they are hidden', async () => {
    await start({ retryAfter: false });
    const { paths } = SwaggerModule.createDocument(app!.nest, new DocumentBuilder().build());
    const statuses = (path: string) => Object.keys(paths[path]!.get!.responses);
    expect(statuses('/budget')).toEqual(['200', '402']);
    expect(statuses('/both')).toEqual(['200', '402', '403']);
    expect(statuses('/secret')).toEqual(['200']);
    expect(statuses('/beside')).toEqual(['200', '429']);
    expect(paths['/budget']!.get!.responses['402']).toMatchObject({ description: 'Payment Required' });
    expect(JSON.stringify(paths)).not.toContain('Retry-After');
  });
});

describe('refusals of other transports', () => {
  it('over GraphQL have the status, and nothing of what is hidden', async () => {
    @Resolver()
    class Library {
      @Query(() => Int, { nullable: true })
      @RateLimit({ ...define.budget, name: 'paid' })
      paid() {
        return 1;
      }

      @Query(() => Int, { nullable: true })
      @RateLimit('guesses')
      guess() {
        return 1;
      }
    }
    app = await HttpApp.start('express', {
      imports: [
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
      ],
      providers: [Library],
      limits: { define },
    });
    const ask = async (query: string) => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${app!.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
      return { response, errors: ((await response.json()) as { errors?: { extensions: object }[] }).errors };
    };
    await ask('{ paid guess }');
    const paid = await ask('{ paid }');
    expect(paid.errors![0]!.extensions).toMatchObject({ code: 'RATE_LIMITED', status: 402, limits: ['paid'] });
    const { errors, response } = await ask('{ guess }');
    expect(errors![0]!.extensions).toMatchObject({ code: 'RATE_LIMITED', limits: [] });
    expect(errors![0]!.extensions).not.toHaveProperty('retryAfterMs');
    expect([...response.headers.keys()].filter((name) => /limit|retry/.test(name))).toEqual([]);
  });

  it('between services have it, too, also of code', async () => {
    @Controller()
    class Handlers {
      constructor(private readonly limiters: LimiterService) {}

      @MessagePattern('paid')
      @RateLimit('budget')
      paid() {
        return 1;
      }

      @MessagePattern('guess')
      @RateLimit('guesses')
      guess() {
        return 1;
      }

      @MessagePattern('thrown')
      async thrown() {
        const decision = { ...(await this.limiters.for('guesses').consume('rpc', 2)) };
        throw new RateLimitExceededException({
          allowed: false,
          decisions: [decision],
          tightest: decision,
          delayMs: 0,
        });
      }
    }
    app = await HttpApp.start('express', { controllers: [Handlers], limits: { define } });
    const server = app.nest.connectMicroservice<MicroserviceOptions>(
      { transport: Transport.TCP, options: { port: 0, host: '127.0.0.1' } },
      { inheritAppConfig: true },
    );
    await app.nest.startAllMicroservices();
    const { port } = server.unwrap<Server>().address() as AddressInfo;
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port, host: '127.0.0.1' } });
    const ask = (name: string) => lastValueFrom(client.send<unknown>(name, {})).catch((error: unknown) => error);
    try {
      const hidden = { status: 'error', statusCode: 429, message: 'Too many requests', error: 'Too Many Requests' };
      expect([await ask('paid'), await ask('paid')]).toMatchObject([
        1,
        { statusCode: 402, message: 'Out of budget', limits: ['budget'] },
      ]);
      expect([await ask('guess'), await ask('guess')]).toEqual([1, { ...hidden, limits: [] }]);
      expect(await ask('thrown')).toEqual({ ...hidden, limits: [] });
    } finally {
      client.close();
    }
  });

  it('over a gateway have it, too, also of code', async () => {
    @UseGuards(RateLimitGuard)
    @WebSocketGateway({ namespace: '' })
    class Gateway {
      constructor(private readonly limiters: LimiterService) {}

      @SubscribeMessage('paid')
      @RateLimit('budget')
      paid() {
        return { event: 'paid', data: 1 };
      }

      @SubscribeMessage('thrown')
      async thrown() {
        throw new RateLimitExceededException(await this.limiters.check([{ limit: 'guesses', key: 'ws', cost: 2 }]));
      }
    }
    app = await HttpApp.start('express', { providers: [Gateway], limits: { define } });
    const client = await connect('socket.io', app.url);
    try {
      client.send('paid', {});
      expect(await client.next()).toEqual({ event: 'paid', data: 1 });
      client.send('paid', {});
      expect(await client.next()).toMatchObject({
        event: 'exception',
        data: { statusCode: 402, message: 'Out of budget', limits: ['budget'], retryAfterMs: 60_000 },
      });
      client.send('thrown', {});
      expect(await client.next()).toMatchObject({ event: 'exception', data: { limits: [] } });
    } finally {
      client.close();
    }
  });
});

describe('wrong options', () => {
  it.each<[string, RateLimitModuleOptions, string]>([
    [
      'a status below 400',
      { define: { a: { ...minute, rate: 1, status: 200 } } },
      '.status: expected a whole number >= 400 and <= 599, received 200',
    ],
    [
      'a status in words',
      { define: { a: { ...minute, rate: 1, status: '402' as never } } },
      ".status: expected a whole number >= 400 and <= 599, received '402'",
    ],
    [
      'hidden in words',
      { define: { a: { ...minute, rate: 1, hidden: 'yes' as never } } },
      ".hidden: expected true or false, received 'yes'",
    ],
    ['retryAfter in words', { retryAfter: 'no' as never }, ".retryAfter: expected true or false, received 'no'"],
    [
      'an answer that is an object',
      { answer: {} as never },
      '.answer: expected a function, or an injectable class that implements RefusalResolver, received {}',
    ],
  ])('%s is refused at start-up', async (_, limits, message) => {
    await expect(HttpApp.start('express', { limits })).rejects.toThrow(message);
  });
});
