import 'reflect-metadata';
import { afterEach, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  type INestApplication,
  type ModuleMetadata,
  Post,
  type Type,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { GqlExecutionContext, GraphQLModule, Int, Mutation, Query, Resolver } from '@nestjs/graphql';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SkipThrottle, Throttle, ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { RateLimit, RateLimitModule, SkipRateLimit } from '../../lib/index.js';
import { connect } from '../e2e/websocket-clients.js';

/** Reads each kind of call, as its documentation says. */
@Injectable()
class AnyCallThrottlerGuard extends ThrottlerGuard {
  protected override getRequestResponse(context: ExecutionContext) {
    if (context.getType<string>() === 'graphql') {
      const { req } = GqlExecutionContext.create(context).getContext<{ req: { res: Record<string, never> } }>();
      return { req, res: req.res };
    }
    if (context.getType() === 'ws') {
      const { _socket: socket } = context.switchToWs().getClient<{ _socket: { remoteAddress: string } }>();
      return { req: { ip: socket.remoteAddress }, res: {} };
    }
    return super.getRequestResponse(context);
  }
}

/** The classes of the application, with the decorators of one package or the other. */
function application(few: () => MethodDecorator & ClassDecorator, skip: () => MethodDecorator): Type[] {
  @Controller('cats')
  class CatsController {
    @Get()
    all() {}

    @Get('one')
    one() {}

    @Post()
    @few()
    create() {}

    @Get('free')
    @skip()
    free() {}
  }
  @Controller('dogs')
  @few()
  class DogsController {
    @Get()
    all() {}

    @Get('one')
    one() {}
  }
  @Resolver()
  class BirdsResolver {
    @Query(() => Int)
    birds() {
      return 1;
    }

    @Query(() => Int)
    bird() {
      return 1;
    }

    @Mutation(() => Int)
    @few()
    addBird() {
      return 1;
    }
  }
  @WebSocketGateway()
  class ChatGateway {
    @SubscribeMessage('say')
    say() {
      return { event: 'said', data: 1 };
    }

    @SubscribeMessage('shout')
    shout() {
      return { event: 'shouted', data: 1 };
    }
  }
  return [CatsController, DogsController, BirdsResolver, ChatGateway];
}

const before = (): ModuleMetadata => {
  const [cats, dogs, birds, chat] = application(
    () => Throttle({ default: { limit: 1, ttl: 3_600_000 } }),
    () => SkipThrottle(),
  );
  return {
    imports: [ThrottlerModule.forRoot([{ limit: 2, ttl: 3_600_000 }])],
    controllers: [cats!, dogs!],
    providers: [birds!, chat!, { provide: APP_GUARD, useClass: AnyCallThrottlerGuard }],
  };
};

const after = (): ModuleMetadata => {
  const each = { name: 'default', algo: 'sliding-log', interval: '1h', blockFor: '1h' } as const;
  const [cats, dogs, birds, chat] = application(
    () => RateLimit({ ...each, rate: 1, perRoute: true }),
    () => SkipRateLimit(),
  );
  return {
    imports: [
      RateLimitModule.forRoot({
        headers: 'legacy',
        body: () => ({ statusCode: 429, message: 'ThrottlerException: Too Many Requests' }),
        limits: [{ ...each, rate: 2, perRoute: true }],
      }),
    ],
    controllers: [cats!, dogs!],
    providers: [birds!, chat!],
  };
};

let app: INestApplication | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

interface Answer {
  readonly call: string;
  readonly allowed: boolean;
  /** The headers that tell of limits, and the body of a refusal. */
  readonly told?: unknown;
}

const HTTP_CALLS = ['GET /cats', 'GET /cats/one', 'POST /cats', 'GET /cats/free', 'GET /dogs', 'GET /dogs/one'];
const GRAPHQL_CALLS = ['{ birds }', '{ bird }', 'mutation { addBird }'];
const MESSAGES = ['say', 'shout'];
const thrice = (calls: readonly string[]) => calls.flatMap((call) => [call, call, call]);

/** What its clients get, call after call. */
async function answers(metadata: ModuleMetadata): Promise<Answer[]> {
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
  const testing = await Test.createTestingModule({ ...metadata, imports: [...metadata.imports!, graphql] }).compile();
  app = testing.createNestApplication();
  app.useLogger(false);
  app.useWebSocketAdapter(new WsAdapter(app));
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const told: Answer[] = [];
  for (const call of thrice(HTTP_CALLS)) {
    const [method, path] = call.split(' ') as [string, string];
    const response = await fetch(url + path, { method });
    const allowed = response.status !== 429;
    const headers = Object.fromEntries(
      [...response.headers].filter(([name]) => /^x-ratelimit-(limit|remaining)$/.test(name)),
    );
    const refusal = { body: allowed ? undefined : await response.json(), waits: response.headers.has('retry-after') };
    told.push({ call, allowed, told: allowed ? headers : refusal });
  }
  for (const call of thrice(GRAPHQL_CALLS)) {
    const body = JSON.stringify({ query: call });
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    told.push({ call, allowed: !('errors' in ((await response.json()) as object)) });
  }
  const client = await connect('ws', url);
  for (const call of thrice(MESSAGES)) {
    client.send(call);
    told.push({ call, allowed: (await client.next()).event !== 'exception' });
  }
  client.close();
  await app.close();
  app = undefined;
  return told;
}

it('an application of REST, GraphQL and ws routes answers as before', async () => {
  const expected = await answers(before());
  expect(expected.filter(({ allowed }) => !allowed)).toHaveLength(14);
  expect(await answers(after())).toEqual(expected);
});
