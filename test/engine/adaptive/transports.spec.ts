import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Controller, GatewayTimeoutException, type INestApplication, UseGuards } from '@nestjs/common';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import {
  type ClientProxy,
  ClientProxyFactory,
  MessagePattern,
  type MicroserviceOptions,
  Transport,
} from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { firstValueFrom } from 'rxjs';
import { type LimitDefinition, LimiterService, type Priority, RateLimit, RateLimitGuard } from '../../../lib/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { connect, libraries } from '../../e2e/websocket-clients.js';
import { freePort } from '../../support/processes/ports.mjs';
import { variants } from '../../support/tier.js';
import { until } from '../../support/time/until.js';

/** What the next call is, and what handlers wait for. */
const asked: { priority: Priority } = { priority: 'default' };
const work = { reached: 0, leave: () => {}, gate: Promise.resolve() };

/** Two at once, one of which may not be critical: 0.9 of 2, and at least one. */
const overload: LimitDefinition = {
  name: 'overload',
  algo: 'adaptive',
  scope: 'instance',
  min: 2,
  max: 2,
  initial: 2,
  priority: () => asked.priority,
};

async function atWork(): Promise<string> {
  work.reached++;
  await work.gate;
  return 'done';
}

function late(): never {
  throw new GatewayTimeoutException();
}

@Resolver()
class WorkResolver {
  @Query(() => String)
  @RateLimit('overload')
  work(): Promise<string> {
    return atWork();
  }

  @Query(() => String)
  @RateLimit('overload')
  late(): string {
    return late();
  }
}

@WebSocketGateway()
@UseGuards(RateLimitGuard)
class WorkGateway {
  @SubscribeMessage('work')
  @RateLimit('overload')
  async work() {
    return { event: 'answer', data: await atWork() };
  }

  @SubscribeMessage('late')
  @RateLimit('overload')
  late() {
    late();
  }
}

@Controller()
class WorkController {
  @MessagePattern('work')
  @RateLimit('overload')
  work(): Promise<string> {
    return atWork();
  }

  @MessagePattern('late')
  @RateLimit('overload')
  late() {
    late();
  }
}

/** What a call of a handler was answered with: its result, or what its client is told of the error. */
type Ask = (handler: 'work' | 'late') => Promise<unknown>;

interface Started {
  readonly ask: Ask;
  readonly close: () => Promise<void>;
  readonly service: LimiterService;
}

async function startGraphql(): Promise<Started> {
  const app = await HttpApp.start('express', {
    limits: { define: { overload } },
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        context: (req: object, res: object) => ({ req, res }),
      }),
    ],
    providers: [WorkResolver],
  });
  const ask: Ask = async (handler) => {
    const response = await fetch(`${app.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: `{ ${handler} }` }),
    });
    const { data, errors } = (await response.json()) as {
      data?: Record<string, unknown>;
      errors?: { message: string; extensions: object }[];
    };
    return errors === undefined
      ? data?.[handler]
      : { message: errors[0]!.message, ...errors[0]!.extensions, stacktrace: undefined };
  };
  return { ask, close: () => app.close(), service: app.nest.get(LimiterService) };
}

async function startGateway(library: (typeof libraries)[number]): Promise<Started> {
  const app = await HttpApp.start('express', {
    limits: { define: { overload } },
    providers: [WorkGateway],
    configure: (nest: INestApplication) => library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest)),
  });
  const clients: Awaited<ReturnType<typeof connect>>[] = [];
  // A client of its own for each message, so that answers do not meet.
  const ask: Ask = async (handler) => {
    const client = await connect(library, app.url);
    clients.push(client);
    client.send(handler);
    return (await client.next()).data;
  };
  const close = async () => {
    for (const client of clients) client.close();
    await app.close();
  };
  return { ask, close, service: app.nest.get(LimiterService) };
}

async function startMicroservice(): Promise<Started> {
  const app = await HttpApp.start('express', { limits: { define: { overload } }, controllers: [WorkController] });
  const options = { transport: Transport.TCP, options: { host: '127.0.0.1', port: await freePort() } } as const;
  app.nest.connectMicroservice<MicroserviceOptions>(options, { inheritAppConfig: true });
  await app.nest.startAllMicroservices();
  const client: ClientProxy = ClientProxyFactory.create(options);
  const ask: Ask = (handler) => firstValueFrom(client.send<unknown>(handler, {})).catch((error: unknown) => error);
  const close = async () => {
    await client.close();
    await app.close();
  };
  return { ask, close, service: app.nest.get(LimiterService) };
}

const kinds: [name: string, start: () => Promise<Started>, overloaded: object][] = [
  ['GraphQL', startGraphql, { code: 'RATE_LIMITED', limits: ['overload'], retryAfterMs: expect.any(Number) }],
  ...variants(libraries).map((library): (typeof kinds)[number] => [
    `WebSockets of ${library}`,
    () => startGateway(library),
    { status: 'error', statusCode: 503, limits: ['overload'], retryAfterMs: expect.any(Number) },
  ]),
  [
    'a microservice',
    startMicroservice,
    { status: 'error', statusCode: 503, limits: ['overload'], retryAfterMs: expect.any(Number) },
  ],
];

describe.each(kinds)('an adaptive limit over %s', (_, start, overloaded) => {
  let started: Started;

  beforeEach(async () => {
    asked.priority = 'default';
    work.reached = 0;
    work.gate = new Promise((resolve) => (work.leave = resolve));
    started = await start();
  });
  afterEach(async () => {
    work.leave();
    await started.close();
  });

  const peek = () => started.service.for('overload').peek('global', { priority: 'critical' });

  it('holds until the handler is done, and sheds the less important first', async () => {
    const { ask } = started;
    const first = ask('work');
    await until(() => work.reached === 1);
    expect(await ask('work')).toMatchObject({ message: 'Too busy, try again later', ...overloaded });
    asked.priority = 'critical';
    const second = ask('work');
    await until(() => work.reached === 2);
    expect(await peek()).toMatchObject({ quota: 2, inFlight: 2, remaining: 0 });
    expect(await ask('work')).toMatchObject(overloaded);
    work.leave();
    expect(await Promise.all([first, second])).toEqual(['done', 'done']);
    await until(async () => (await peek()).inFlight === 0);
    asked.priority = 'default';
    expect(await ask('work')).toBe('done');
    expect(work.reached).toBe(3);
  });

  it('holds nothing once a handler has failed', async () => {
    const { ask } = started;
    for (let call = 0; call < 3; call++) expect(await ask('late')).not.toMatchObject(overloaded);
    await until(async () => (await peek()).inFlight === 0);
  });
});
