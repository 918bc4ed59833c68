import 'reflect-metadata';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Controller, UseGuards } from '@nestjs/common';
import { GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import {
  ClientProxyFactory,
  MessagePattern,
  type MicroserviceOptions,
  Transport,
  type ClientProxy,
} from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { firstValueFrom } from 'rxjs';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
} from '../../../lib/index.js';
import { frameworks, HttpApp } from '../../e2e/http-app.js';
import { connect, type GatewayClient, libraries } from '../../e2e/websocket-clients.js';
import { ExplainingGuard, explainFirst, lastExplained } from './explaining-guard.js';

const define = {
  books: { algo: 'fixed-window', rate: 1, interval: '1m' },
  all: { algo: 'fixed-window', rate: 5, interval: '1m', key: 'global' },
} as const satisfies Record<string, LimitDefinition>;
const limits = { define, guard: 'custom' } as const;

@Resolver()
class LibraryResolver {
  @Query(() => Int, { nullable: true })
  @RateLimit('books', 'all')
  books() {
    return 1;
  }
}

@WebSocketGateway()
@UseGuards(ExplainingGuard, RateLimitGuard)
class BooksGateway {
  @SubscribeMessage('books')
  @RateLimit('books', 'all')
  books() {
    return { event: 'answer', data: 1 };
  }
}

@Controller()
@UseGuards(ExplainingGuard, RateLimitGuard)
class BooksController {
  @MessagePattern('books')
  @RateLimit('books', 'all')
  books() {
    return 1;
  }
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** What is told of a second request of a client whose first one used all. */
function expectRefusal(controller: string, transport: string): void {
  expect(lastExplained()).toMatchObject({
    subject: { kind: 'request', controller, handler: 'books', transport },
    outcome: { verdict: 'refused', refusedBy: ['books'], delayMs: 0 },
    limits: [
      { name: 'books', key: { by: 'ip', identity: 'ip:127.0.0.1' }, state: { remaining: 0 } },
      { name: 'all', key: { by: 'global', identity: 'global' }, state: { remaining: 4 }, decision: { allowed: true } },
    ],
  });
}

/** The same of its route. */
async function expectRouteRefusal(limiters: LimiterService, controller: string): Promise<void> {
  const route = await limiters.explain({ controller, handler: 'books', key: 'ip:127.0.0.1' });
  const { limits: explained, outcome } = lastExplained();
  expect([route.outcome.verdict, route.outcome.refusedBy]).toEqual([outcome.verdict, outcome.refusedBy]);
  expect(route.limits.map(({ name, key }) => [name, key])).toEqual(explained.map(({ name, key }) => [name, key]));
}

it.each(frameworks)('fields of GraphQL are explained, on %s', async (framework) => {
  const app = await HttpApp.start(framework, {
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
    ],
    providers: [LibraryResolver, ...explainFirst],
    limits,
  });
  closing.push(() => app.close());
  const ask = async () => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ query: '{ books }' });
    const response = await fetch(`${app.url}/graphql`, { method: 'POST', headers, body });
    return (await response.json()) as { data: { books: number | null }; errors?: unknown[] };
  };
  expect(await ask()).toEqual({ data: { books: 1 } });
  expect(lastExplained().outcome.verdict).toBe('allowed');
  expect((await ask()).data.books).toBeNull();
  expectRefusal('LibraryResolver', 'graphql');
  await expectRouteRefusal(app.nest.get(LimiterService), 'LibraryResolver');
});

describe.each(libraries)('messages of %s', (library) => {
  it('are explained', async () => {
    const app = await HttpApp.start('express', {
      providers: [BooksGateway],
      limits,
      configure: (nest) => library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest)),
    });
    closing.push(() => app.close());
    const client: GatewayClient = await connect(library, app.url);
    closing.push(() => client.close());
    client.send('books', {});
    expect(await client.next()).toEqual({ event: 'answer', data: 1 });
    expect(lastExplained().outcome.verdict).toBe('allowed');
    client.send('books', {});
    expect(await client.next()).toMatchObject({ event: 'exception', data: { limits: ['books'] } });
    expectRefusal('BooksGateway', 'ws');
    await expectRouteRefusal(app.nest.get(LimiterService), 'BooksGateway');
  });
});

it('messages of microservices are explained', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const options = { transport: Transport.TCP, options: { host: '127.0.0.1', port } } as const;
  const testing = await Test.createTestingModule({
    controllers: [BooksController],
    imports: [RateLimitModule.forRoot(limits)],
  }).compile();
  testing.useLogger(false);
  const service = testing.createNestMicroservice<MicroserviceOptions>(options);
  await service.listen();
  closing.push(() => service.close());
  const client: ClientProxy = ClientProxyFactory.create(options);
  closing.push(() => client.close());
  const ask = () => firstValueFrom(client.send<unknown>('books', {})).catch((error: unknown) => error);
  expect(await ask()).toBe(1);
  expect(lastExplained().outcome.verdict).toBe('allowed');
  expect(await ask()).toMatchObject({ limits: ['books'] });
  expectRefusal('BooksController', 'rpc');
  await expectRouteRefusal(testing.get(LimiterService), 'BooksController');
});
