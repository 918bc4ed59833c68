import 'reflect-metadata';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  HttpException,
  Inject,
  UseFilters,
  UseGuards,
  type Type,
} from '@nestjs/common';
import { GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import { WsAdapter } from '@nestjs/platform-ws';
import { BaseWsExceptionFilter, SubscribeMessage, WebSocketGateway, type WsException } from '@nestjs/websockets';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitExceededException,
  RateLimitGuard,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { frameworks, HttpApp } from './http-app.js';
import { connect, libraries } from './websocket-clients.js';

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  calls: { ...minute, rate: 1 },
  bytes: { ...minute, rate: 10, message: 'Too many bytes' },
} satisfies Record<string, LimitDefinition>;

/** What the handlers throw. */
abstract class Thrower {
  @Inject(LimiterService)
  protected readonly limiters!: LimiterService;

  protected async spend(limits: readonly (string | LimitDefinition)[], ...more: [message?: string]): Promise<string> {
    const result = await this.limiters.check(limits.map((limit) => ({ limit, key: 'acme' })));
    if (!result.allowed) throw new RateLimitExceededException(result, ...more);
    return 'done';
  }
}

let shared: Promise<string> | undefined;

@Controller()
class CallsController extends Thrower {
  @Get('bare')
  bare() {
    return this.spend(['calls']);
  }

  @Get('guarded')
  @RateLimit({ ...minute, name: 'route', rate: 5 })
  guarded() {
    return this.spend(['calls']);
  }

  @Get('inline')
  inline() {
    return this.spend([{ ...minute, name: 'inline', rate: 1 }]);
  }

  @Get('shared')
  async shared() {
    await this.limiters.for('calls').consume('acme');
    return (shared ??= this.spend(['calls']));
  }

  @Get('own')
  own() {
    return this.spend(['calls'], 'Come back later');
  }

  @Get('bytes')
  async bytes() {
    await this.limiters.for('bytes').consume('acme', 10);
    return this.spend(['bytes']);
  }

  @Get('body')
  async body() {
    const result = await this.limiters.check([{ limit: 'calls', key: 'acme' }]);
    if (!result.allowed) throw new RateLimitExceededException(result, undefined, undefined, { mine: true });
  }

  @Get('filtered')
  @UseFilters(
    new (class implements ExceptionFilter {
      catch(exception: HttpException, host: ArgumentsHost) {
        const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: object): void } }>();
        response.status(exception.getStatus()).send({ filtered: exception.message });
      }
    })(),
  )
  filtered() {
    return this.spend(['calls']);
  }
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

describe.each(frameworks)('a refusal that a handler throws, over %s', (framework) => {
  /** The answer to the second request of a path. */
  const refused = async (
    path: string,
    limits: RateLimitModuleOptions = {},
    controllers: Type[] = [CallsController],
  ) => {
    app = await HttpApp.start(framework, { controllers, limits: { define, ...limits } });
    await app.get(path);
    const response = await app.get(path);
    expect(response.status).toBe(429);
    return { response, headers: response.headers, body: await response.json() };
  };
  const usual = { statusCode: 429, message: 'Too many requests', error: 'Too Many Requests', limits: ['calls'] };

  it('has the headers of its limits', async () => {
    const { headers, body } = await refused('/bare');
    expect(headers.get('retry-after')).toBe('60');
    expect(headers.get('ratelimit')).toBe('"calls";r=0;t=60');
    expect(headers.get('ratelimit-policy')).toBe('"calls";q=1;w=60');
    expect(body).toEqual(usual);
  });

  it('has those of what the guard checked, too', async () => {
    const { headers, body } = await refused('/guarded');
    expect(headers.get('ratelimit')).toBe('"route";r=3;t=60, "calls";r=0;t=60');
    expect(headers.get('retry-after')).toBe('60');
    expect(body).toEqual(usual);
  });

  it('tells when to come back, of limits without a name in the options', async () => {
    const { headers, body } = await refused('/inline');
    expect(headers.get('retry-after')).toBe('60');
    expect(body).toMatchObject({ limits: ['inline'] });
  });

  it('has them for each of the requests that wait for one promise', async () => {
    shared = undefined;
    for (const path of ['/shared?a', '/shared?b']) {
      const { headers, body: said } = await refused(path, { problem: true });
      expect([headers.get('retry-after'), headers.get('ratelimit')]).toEqual(['60', '"calls";r=0;t=60']);
      expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(said).toMatchObject({ detail: 'Too many requests' });
      await app?.close();
    }
  });

  it('is problem details where the option says so', async () => {
    const { headers, body } = await refused('/bare', { problem: true });
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(body).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota Exceeded',
      status: 429,
      detail: 'Too many requests',
      'violated-policies': ['calls'],
    });
  });

  it('has the body that the option makes', async () => {
    const { body } = await refused('/guarded', {
      body: (context, { tightest }, given) => ({ at: context.getHandler().name, by: tightest.limit, given }),
    });
    expect(body).toEqual({ at: 'guarded', by: 'calls', given: usual });
  });

  it('has the message of its limit, or its own', async () => {
    expect((await refused('/bytes')).body).toMatchObject({ message: 'Too many bytes', limits: ['bytes'] });
    await app?.close();
    expect((await refused('/own')).body).toEqual({ ...usual, message: 'Come back later' });
    await app?.close();
    expect((await refused('/body', { problem: true })).body).toEqual({ mine: true });
  });

  it('goes to filters of the app first', async () => {
    expect((await refused('/filtered')).body).toEqual({ filtered: 'Too many requests' });
    await app?.close();
    @Catch(RateLimitExceededException)
    class OwnFilter implements ExceptionFilter {
      catch(_: unknown, host: ArgumentsHost) {
        const response = host.switchToHttp().getResponse<{ status(code: number): { send(body: object): void } }>();
        response.status(418).send({});
      }
    }
    app = await HttpApp.start(framework, {
      controllers: [CallsController],
      limits: { define },
      configure: (nest) => void nest.useGlobalFilters(new OwnFilter()),
    });
    expect(await app.statuses(2, '/bare')).toEqual([200, 418]);
  });
});

it.each(frameworks)('a refusal that a field of GraphQL throws has a code, over %s', async (framework) => {
  @Resolver()
  class CallsResolver extends Thrower {
    @Query(() => Int, { nullable: true })
    async calls() {
      await this.spend(['calls']);
      return 1;
    }
  }
  const imports = [
    GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      autoSchemaFile: true,
      graphiql: false,
      ...(framework === 'fastify' && { context: (req: unknown, reply: unknown) => ({ req, reply }) }),
    }),
  ];
  app = await HttpApp.start(framework, { imports, providers: [CallsResolver], limits: { define } });
  const ask = () => {
    const headers = { 'content-type': 'application/json' };
    return fetch(`${app!.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query: '{ calls }' }) });
  };
  expect(await (await ask()).json()).toEqual({ data: { calls: 1 } });
  const response = await ask();
  expect(await response.json()).toMatchObject({
    data: { calls: null },
    errors: [
      {
        message: 'Too many requests',
        extensions: { code: 'RATE_LIMITED', retryAfterMs: 60_000, limits: ['calls'] },
      },
    ],
  });
  expect(response.headers.get('retry-after')).toBe('60');
});

describe.each(libraries)('a refusal that a gateway throws, over %s', (library) => {
  it('is the event of a refusal of the guard', async () => {
    @WebSocketGateway()
    class CallsGateway extends Thrower {
      @SubscribeMessage('call')
      async call() {
        return { event: 'answer', data: await this.spend(['calls']) };
      }
    }
    app = await HttpApp.start('express', {
      providers: [CallsGateway],
      limits: { define },
      configure: (nest) => library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest)),
    });
    const client = await connect(library, app.url);
    client.send('call', {});
    expect(await client.next()).toEqual({ event: 'answer', data: 'done' });
    client.send('call', {});
    expect(await client.next()).toMatchObject({
      event: 'exception',
      data: { status: 'error', statusCode: 429, message: 'Too many requests', limits: ['calls'], retryAfterMs: 60_000 },
    });
    client.close();
  });
});

it('goes to filters of a gateway first', async () => {
  @Catch(RateLimitExceededException)
  class OwnFilter implements ExceptionFilter {
    catch(_: unknown, host: ArgumentsHost) {
      host.switchToWs().getClient<{ emit(event: string, data: string): void }>().emit('filtered', 'own');
    }
  }
  @WebSocketGateway()
  @UseFilters(OwnFilter)
  class FilteredGateway extends Thrower {
    @SubscribeMessage('call')
    async call() {
      return { event: 'answer', data: await this.spend(['calls']) };
    }
  }
  app = await HttpApp.start('express', { providers: [FilteredGateway], limits: { define } });
  const client = await connect('socket.io', app.url);
  client.send('call', {});
  expect(await client.next()).toEqual({ event: 'answer', data: 'done' });
  client.send('call', {});
  expect(await client.next()).toEqual({ event: 'filtered', data: 'own' });
  client.close();
});

describe('a message that the guard refuses, where Nest emits errors at the client object alone, as Nest 11 does', () => {
  const prototype = BaseWsExceptionFilter.prototype as unknown as Record<string, unknown>;
  const { emitMessage } = prototype;
  beforeAll(() => {
    delete prototype['emitMessage'];
    // As Nest 11 has it in all places.
    Object.defineProperty(prototype, 'handleError', {
      configurable: true,
      writable: true,
      value: (client: { emit(event: string, data: unknown): void }, exception: WsException) =>
        client.emit('exception', exception.getError()),
    });
  });
  const { handleError } = prototype;
  afterAll(() => void Object.assign(prototype, { emitMessage, handleError }));

  it.each(libraries)('is told so once: %s', async (library) => {
    @WebSocketGateway()
    @UseGuards(RateLimitGuard)
    class ChatGateway {
      @SubscribeMessage('say')
      @RateLimit({ ...minute, name: 'say', rate: 1 })
      say() {
        return { event: 'answer', data: 'said' };
      }
    }
    app = await HttpApp.start('express', {
      providers: [ChatGateway],
      configure: (nest) => library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest)),
    });
    const client = await connect(library, app.url);
    const said = async () => {
      client.send('say', {});
      return client.next();
    };
    expect(await said()).toEqual({ event: 'answer', data: 'said' });
    const refused = { event: 'exception', data: { statusCode: 429, limits: ['say'] } };
    expect([await said(), await said()]).toMatchObject([refused, refused]);
    client.close();
  });
});
