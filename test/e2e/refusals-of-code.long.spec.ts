import { afterEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Catch, Controller, Injectable, type INestApplication, Module, Optional, UseFilters } from '@nestjs/common';
import { GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import { ClientProxyFactory, MessagePattern, type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { BaseWsExceptionFilter, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { firstValueFrom } from 'rxjs';
import {
  type CheckResult,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitExceededException,
  RateLimitModule,
  type RateLimitModuleExtras,
  type RateLimitModuleOptions,
  type RefusalResolver,
  type RefusalResponse,
} from '../../lib/index.js';
import { HttpApp } from './http-app.js';
import { freePort } from '../support/processes/ports.mjs';
import { connect, type GatewayClient, libraries, type Library } from './websocket-clients.js';

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  budget: { ...minute, rate: 1, status: 402, message: 'Out of budget' },
  silent: { ...minute, rate: 1, retryAfter: false },
} satisfies Record<string, LimitDefinition>;

/** Refuses by itself: no limit is declared on it. */
@WebSocketGateway()
class Gateway {
  constructor(@Optional() private readonly limiters?: LimiterService) {}

  @SubscribeMessage('budget')
  budget() {
    return this.spend('budget');
  }

  @SubscribeMessage('silent')
  silent() {
    return this.spend('silent');
  }

  @SubscribeMessage('given')
  async given() {
    const result = await this.limiters!.check([{ limit: 'budget', key: 'acme', cost: 2 }]);
    throw new RateLimitExceededException(result, 'Come back later', undefined, undefined, 503);
  }

  private async spend(limit: string) {
    const result = await this.limiters!.check([{ limit, key: 'acme', cost: 2 }]);
    if (!result.allowed) throw new RateLimitExceededException(result);
    return { event: 'answer', data: 'done' };
  }
}

@Catch(TypeError)
class OtherErrors extends BaseWsExceptionFilter {}

@WebSocketGateway()
@UseFilters(OtherErrors)
class GatewayWithLimits {
  constructor(private readonly limiters: LimiterService) {}

  @SubscribeMessage('both')
  @RateLimit({ ...minute, name: 'route', rate: 5, message: 'Of the route', status: 403 })
  async both() {
    const limit: LimitDefinition = { ...minute, name: 'route', rate: 1 };
    throw new RateLimitExceededException(await this.limiters.check([{ limit, key: 'acme', cost: 2 }]));
  }
}

@Injectable()
class Upgrade implements RefusalResolver {
  async resolve(_: unknown, { tightest }: CheckResult, usual: RefusalResponse) {
    await Promise.resolve();
    return { status: 402, body: { ...usual.body, statusCode: 402, plan: tightest.limit } };
  }
}
@Module({ providers: [Upgrade] })
class UpgradeModule {}

const apps: { close(): Promise<unknown> }[] = [];
const clients: GatewayClient[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  for (const app of apps.splice(0)) await app.close();
});

async function clientOf(library: Library, url: string) {
  const client = await connect(library, url);
  clients.push(client);
  return async (event: string, data?: unknown) => {
    client.send(event, data);
    return client.next();
  };
}

const adapterOf = (library: Library) => (nest: INestApplication) =>
  void (library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest)));

describe.each(libraries)('refusals that code of a gateway throws, over %s', (library) => {
  const start = async (
    limits: RateLimitModuleOptions & RateLimitModuleExtras = { define },
    provider: typeof Gateway | typeof GatewayWithLimits = Gateway,
  ) => {
    const app = await HttpApp.start('express', {
      providers: [provider],
      imports: [UpgradeModule],
      limits,
      configure: adapterOf(library),
    });
    apps.push(app);
    return clientOf(library, app.url);
  };

  it.each<[string, RateLimitModuleExtras]>([
    ['that the guard has seen', {}],
    ['that no guard has seen', { guard: false }],
  ])('have the status and the message of their limit, in calls %s', async (_, extras) => {
    const ask = await start({ define, ...extras });
    // Data that is no object identifies no message.
    for (const data of [{ some: 'data' }, 'text', undefined]) {
      expect(await ask('budget', data)).toEqual({
        event: 'exception',
        data: expect.objectContaining({
          status: 'error',
          statusCode: 402,
          message: 'Out of budget',
          error: 'Payment Required',
          limits: ['budget'],
          retryAfterMs: null,
        }) as unknown,
      });
    }
  });

  it('say nothing of the wait where their limit does not', async () => {
    const ask = await start();
    const { data } = await ask('silent', {});
    expect(data).toMatchObject({ statusCode: 429, limits: ['silent'] });
    expect(data).not.toHaveProperty('retryAfterMs');
  });

  it('keep what the code gave them', async () => {
    const ask = await start();
    expect(await ask('given', {})).toMatchObject({ data: { statusCode: 503, message: 'Come back later' } });
  });

  it('are answered by the resolver of the app', async () => {
    const ask = await start({ define, answer: Upgrade });
    expect(await ask('silent', {})).toMatchObject({
      event: 'exception',
      data: { statusCode: 402, plan: 'silent', limits: ['silent'] },
    });
  });

  it('follow the limits of their own app, if several share the gateway', async () => {
    const other = { ...define, budget: { ...define.budget, status: 403, message: 'Another app' } };
    const asks = [await start(), await start({ define: other })];
    for (const [index, message] of ['Out of budget', 'Another app', 'Out of budget'].entries()) {
      expect(await asks[index % 2]!('budget', {})).toMatchObject({ event: 'exception', data: { message } });
    }
  });

  it('leave alone an app without the module, that shares the gateway', async () => {
    await start();
    const testing = await Test.createTestingModule({ providers: [Gateway] }).compile();
    testing.useLogger(false);
    const nest = testing.createNestApplication();
    adapterOf(library)(nest);
    await nest.listen(0, '127.0.0.1');
    apps.push(nest);
    const ask = await clientOf(library, await nest.getUrl());
    expect(await ask('budget', {})).toMatchObject({
      event: 'exception',
      data: { status: 'error', message: 'Internal server error' },
    });
  });

  it('have those of a limit of the route, which only the call knows', async () => {
    const ask = await start({}, GatewayWithLimits);
    for (const data of [{ some: 'data' }, 'text']) {
      expect(await ask('both', data)).toMatchObject({
        event: 'exception',
        data: { statusCode: 403, message: 'Of the route' },
      });
    }
  });
});

/** What code throws when nothing is left of the budget. */
const overBudget = async (limiters: LimiterService) =>
  new RateLimitExceededException(await limiters.check([{ limit: 'budget', key: 'acme', cost: 2 }]));

describe('refusals that code throws elsewhere have the status and the message of their limit', () => {
  it('over GraphQL', async () => {
    @Resolver()
    class Library {
      constructor(private readonly limiters: LimiterService) {}

      @Query(() => Int, { nullable: true })
      async books(): Promise<number> {
        throw await overBudget(this.limiters);
      }
    }
    const app = await HttpApp.start('express', {
      imports: [
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
      ],
      providers: [Library],
      limits: { define },
    });
    apps.push(app);
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ query: '{ books }' });
    const response = await fetch(`${app.url}/graphql`, { method: 'POST', headers, body });
    expect(await response.json()).toMatchObject({
      errors: [{ message: 'Out of budget', extensions: { code: 'RATE_LIMITED', status: 402, limits: ['budget'] } }],
    });
  });

  it('over microservices', async () => {
    @Controller()
    class Handlers {
      constructor(private readonly limiters: LimiterService) {}

      @MessagePattern('budget')
      async budget(): Promise<never> {
        throw await overBudget(this.limiters);
      }

      @MessagePattern('route')
      @RateLimit({ ...minute, name: 'route', rate: 5, message: 'Of the route', status: 403 })
      async ofRoute(): Promise<never> {
        const limit: LimitDefinition = { ...minute, name: 'route', rate: 1 };
        throw new RateLimitExceededException(await this.limiters.check([{ limit, key: 'acme', cost: 2 }]));
      }
    }
    const testing = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define })],
      controllers: [Handlers],
    }).compile();
    testing.useLogger(false);
    const options = { transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } } as const;
    const service = testing.createNestMicroservice<MicroserviceOptions>(options);
    apps.push(service);
    await service.listen();
    const client = ClientProxyFactory.create(options);
    apps.push({ close: async () => client.close() });
    const ask = (pattern: string) => firstValueFrom(client.send<unknown>(pattern, {})).catch((error: unknown) => error);
    expect(await ask('budget')).toMatchObject({ statusCode: 402, message: 'Out of budget', limits: ['budget'] });
    expect(await ask('route')).toMatchObject({ statusCode: 403, message: 'Of the route', limits: ['route'] });
  });
});
