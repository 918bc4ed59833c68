import 'reflect-metadata';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type CanActivate, Controller, type ExecutionContext, type MessageEvent, Sse, UseGuards } from '@nestjs/common';
import { GqlExecutionContext, GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import { type ClientProxy, ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { firstValueFrom, of } from 'rxjs';
import { type ModuleLimit, RateLimitGuard } from '../../../lib/index.js';
import { connect, type GatewayClient, libraries } from '../../e2e/websocket-clients.js';
import { frameworks, HttpApp } from '../../e2e/http-app.js';

const minute = { algo: 'fixed-window', interval: '1m', key: 'global' } as const;

/** A function, and a rate, that allow two and three calls. */
const kinds: [string, number, ModuleLimit][] = [
  ['a function', 2, async () => ({ ...minute, name: 'chosen', rate: 2 })],
  ['a rate', 3, { ...minute, name: 'rated', rate: async () => 3 }],
];

let app: HttpApp | undefined;
let client: ClientProxy | GatewayClient | undefined;
afterEach(async () => {
  await client?.close();
  await app?.close();
  client = app = undefined;
});

/** The outcomes of one call more than is allowed. */
async function outcomes(allowed: number, call: () => Promise<boolean>): Promise<boolean[]> {
  const all: boolean[] = [];
  for (let index = 0; index <= allowed; index++) all.push(await call());
  return all;
}
const expected = (allowed: number) => [...Array.from({ length: allowed }, () => true), false];

class Messages {
  @MessagePattern('ask')
  ask() {
    return 'done';
  }
}

@Controller()
class BareController extends Messages {}

@Controller()
@UseGuards(RateLimitGuard)
class BoundController extends Messages {}

describe.each(kinds)('%s for all routes', (_, allowed, limit) => {
  it.each([
    ['with the guards of the app', BareController, true],
    ['with @UseGuards(RateLimitGuard)', BoundController, false],
  ])('holds for messages of a microservice, %s', async (_how, controller, inheritAppConfig) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const options = { transport: Transport.TCP, options: { host: '127.0.0.1', port } } as const;
    app = await HttpApp.start('express', {
      controllers: [controller],
      limits: { limits: [limit] },
      configure: (nest) => nest.connectMicroservice(options, { inheritAppConfig }),
    });
    await app.nest.startAllMicroservices();
    const proxy = ClientProxyFactory.create(options);
    client = proxy;
    const ask = () =>
      firstValueFrom(proxy.send<unknown>('ask', {})).then(
        () => true,
        () => false,
      );
    expect(await outcomes(allowed, ask)).toEqual(expected(allowed));
  });

  it.each(libraries)('holds for messages to a gateway of %s', async (library) => {
    @WebSocketGateway()
    @UseGuards(RateLimitGuard)
    class Gateway {
      @SubscribeMessage('ask')
      ask() {
        return { event: 'answer', data: 'done' };
      }
    }
    app = await HttpApp.start('express', {
      providers: [Gateway],
      limits: { limits: [limit] },
      configure: (nest) => library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest)),
    });
    const connected = await connect(library, app.url);
    client = connected;
    const ask = async () => {
      connected.send('ask', {});
      return (await connected.next()).event === 'answer';
    };
    expect(await outcomes(allowed, ask)).toEqual(expected(allowed));
  });

  it.each(frameworks)('holds for GraphQL over %s', async (framework) => {
    @Resolver()
    class Books {
      @Query(() => Int, { nullable: true })
      books() {
        return 1;
      }
    }
    app = await HttpApp.start(framework, {
      imports: [
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
      ],
      providers: [Books],
      limits: { limits: [limit] },
    });
    const { url } = app;
    const ask = async () => {
      const body = JSON.stringify({ query: '{ books }' });
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body });
      const { data } = (await response.json()) as { data: { books: number | null } | null };
      return data?.books === 1;
    };
    expect(await outcomes(allowed, ask)).toEqual(expected(allowed));
  });

  it('holds for streams of events', async () => {
    @Controller()
    class Events {
      @Sse('events')
      events() {
        return of({ data: 'done' } as MessageEvent);
      }
    }
    app = await HttpApp.start('express', { controllers: [Events], limits: { limits: [limit] } });
    const ask = async () => {
      const response = await app!.get('/events');
      await response.text();
      return response.status === 200;
    };
    expect(await outcomes(allowed, ask)).toEqual(expected(allowed));
  });
});

it('reads the context of GraphQL', async () => {
  class Auth implements CanActivate {
    canActivate(context: ExecutionContext) {
      const { req } = GqlExecutionContext.create(context).getContext<{ req: Record<string, unknown> }>();
      req['user'] = { id: '1', plan: (req['headers'] as Record<string, string>)['x-plan'] };
      return true;
    }
  }
  @Resolver()
  class Books {
    @Query(() => Int, { nullable: true })
    @UseGuards(Auth)
    books() {
      return 1;
    }
  }
  const plans: unknown[] = [];
  app = await HttpApp.start('express', {
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
    ],
    providers: [Books],
    limits: {
      limits: [
        (context) => {
          const { req } = GqlExecutionContext.create(context).getContext<{ req: { user?: { plan?: string } } }>();
          plans.push(req.user?.plan);
          return null;
        },
      ],
    },
  });
  await fetch(`${app.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-plan': 'pro' },
    body: JSON.stringify({ query: '{ books }' }),
  });
  expect(plans).toEqual(['pro']);
});
