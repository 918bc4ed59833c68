import 'reflect-metadata';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  type ArgumentsHost,
  type CallHandler,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { GqlExecutionContext, GraphQLModule, Int, Mutation, Query, Resolver } from '@nestjs/graphql';
import {
  ClientProxyFactory,
  MessagePattern,
  type MicroserviceOptions,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { BaseWsExceptionFilter, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { firstValueFrom, type Observable, throwError } from 'rxjs';
import {
  type ObservedDecision,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  rateLimitOf,
  type RequestDecision,
} from '../../../lib/index.js';
import { createTestingStore } from '../../../lib/testing/index.js';
import { connect, libraries } from '../../e2e/websocket-clients.js';
import { HttpApp } from '../../e2e/http-app.js';
import { GraphqlApp } from '../../integrations/graphql/graphql-app.js';

const one = { name: 'one', algo: 'fixed-window', rate: 1, interval: '1m', key: 'global' } as const;

const observed: ObservedDecision[] = [];
const onDecision = (decided: ObservedDecision) => void observed.push(decided);
/** What filters and interceptors were told. */
const found: (RequestDecision | undefined)[] = [];
const allowed = () => found.map((decision) => decision?.allowed);

@Injectable()
class Finding implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    found.push(rateLimitOf(context));
    return next.handle();
  }
}

@Catch()
class FindingFilter implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost): unknown {
    found.push(rateLimitOf(host));
    return error;
  }
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
  observed.length = found.length = 0;
  for (const end of ends.splice(0).toReversed()) await end();
});

describe('over GraphQL', () => {
  @Resolver()
  class Library {
    @Query(() => Int)
    free() {
      return 1;
    }

    @Mutation(() => Int)
    @UseFilters(FindingFilter)
    @UseInterceptors(Finding)
    @RateLimit(one)
    order() {
      return 1;
    }

    @Query(() => Int)
    @UseInterceptors({
      intercept: (context, next) => {
        found.push(rateLimitOf(GqlExecutionContext.create(context)));
        return next.handle();
      },
    })
    @RateLimit({ ...one, name: 'other' })
    other() {
      return 1;
    }
  }

  it('hooks know the field, and filters and interceptors what was decided', async () => {
    const app = await HttpApp.start('express', {
      imports: [
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
      ],
      providers: [Library],
      limits: { onDecision },
    });
    ends.push(() => app.close());
    const ask = (query: string) =>
      fetch(`${app.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      });
    for (let call = 0; call < 2; call++) await ask('mutation { placed: order }');
    await ask('{ other }');
    expect(observed.map(({ route, outcome }) => ({ ...route, outcome }))).toEqual([
      { method: 'mutation', path: 'Mutation.order', outcome: 'allowed' },
      { method: 'mutation', path: 'Mutation.order', outcome: 'refused' },
      { method: 'query', path: 'Query.other', outcome: 'allowed' },
    ]);
    expect(observed[0]).toMatchObject({ class: Library, identity: 'global' });
    expect(observed[0]!.request).toMatchObject({ originalUrl: '/graphql' });
    expect(allowed()).toEqual([true, false, true]);
  });

  it('hooks know the field of an operation that is decided as a whole, if it has one', async () => {
    const app = await GraphqlApp.start('Apollo on Express', { providers: [Library], limits: { onDecision } });
    ends.push(() => app.app.close());
    await app.ask('mutation Placed { placed: order }');
    await app.ask('{ first: other second: other }');
    await app.ask('{ other free }');
    await app.ask('query ($isFree: Boolean!) { other free @include(if: $isFree) }', { variables: { isFree: false } });
    expect(observed.map(({ route, limit }) => ({ ...route, limit }))).toEqual([
      { method: 'mutation', path: 'Mutation.order', limit: observed[0]!.limit },
      { method: 'query', path: 'Query.other', limit: 'other' },
      { method: 'query', path: 'Query.*', limit: 'other' },
      { method: 'query', path: 'Query.other', limit: 'other' },
    ]);
  });
});

describe.each(libraries)('over a gateway with %s', (library) => {
  @Catch()
  class SendingFilter extends BaseWsExceptionFilter {
    override catch(...[error, host]: Parameters<BaseWsExceptionFilter['catch']>): void {
      found.push(rateLimitOf(host));
      // eslint-disable-next-line promise/no-promise-in-callback, promise/valid-params
      super.catch(error, host);
    }
  }

  @UseGuards(RateLimitGuard)
  @UseInterceptors(Finding)
  @UseFilters(SendingFilter)
  @WebSocketGateway({ namespace: '' })
  class Gateway {
    @SubscribeMessage('say')
    @RateLimit(one)
    say() {
      return { event: 'said', data: 1 };
    }
  }

  it.each([{ text: 'an object' }, 'a text'])(
    'hooks know the message, and filters what was decided about %j',
    async (data) => {
      const app = await HttpApp.start('express', {
        providers: [Gateway],
        limits: { onDecision },
        configure: (nest) => void (library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest))),
      });
      ends.push(() => app.close());
      const client = await connect(library, app.url);
      ends.push(() => client.close());
      for (let message = 0; message < 2; message++) {
        client.send('say', data);
        if (library === 'socket.io' || message === 0) await client.next();
      }
      while (found.length < 2) await new Promise((resolve) => setImmediate(resolve));
      expect(observed.map(({ route, outcome }) => ({ ...route, outcome }))).toEqual([
        { method: 'ws', path: 'say', outcome: 'allowed' },
        { method: 'ws', path: 'say', outcome: 'refused' },
      ]);
      expect(observed[0]).toMatchObject({ class: Gateway, handler: Reflect.get(Gateway.prototype, 'say') });
      expect(allowed()).toEqual([true, false]);
    },
  );
});

describe('over a microservice', () => {
  @Catch()
  class ReplyingFilter implements ExceptionFilter {
    catch(error: RpcException, host: ArgumentsHost): Observable<never> {
      found.push(rateLimitOf(host));
      return throwError(() => error.getError());
    }
  }

  @Controller()
  @UseFilters(ReplyingFilter)
  @UseInterceptors(Finding)
  class Sums {
    @MessagePattern({ cmd: 'sum' })
    @RateLimit(one)
    sum() {
      return 3;
    }
  }

  it.each([{ of: [1, 2] }, 12])('hooks know the pattern, and filters what was decided about %j', async (data) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const options: MicroserviceOptions = { transport: Transport.TCP, options: { host: '127.0.0.1', port } };
    const testing = await Test.createTestingModule({
      controllers: [Sums],
      imports: [RateLimitModule.forRoot({ store: createTestingStore(), onDecision })],
    }).compile();
    testing.useLogger(false);
    const app = testing.createNestMicroservice<MicroserviceOptions>(options);
    ends.push(() => app.close());
    await app.listen();
    const client = ClientProxyFactory.create(options as never);
    ends.push(() => client.close());
    const ask = () => firstValueFrom(client.send<unknown>({ cmd: 'sum' }, data)).catch(() => 'refused');
    expect([await ask(), await ask()]).toEqual([3, 'refused']);
    expect(observed.map(({ route, outcome }) => ({ ...route, outcome }))).toEqual([
      { method: 'rpc', path: '{"cmd":"sum"}', outcome: 'allowed' },
      { method: 'rpc', path: '{"cmd":"sum"}', outcome: 'refused' },
    ]);
    expect(allowed()).toEqual([true, false]);
  });
});
