import 'reflect-metadata';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  Logger,
  UseGuards,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import {
  Args,
  Field,
  GqlExecutionContext,
  GraphQLModule,
  Int,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import {
  type CheckResult,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  RateLimitExceededException,
  rateLimitMiddleware,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { frameworks, type Framework, HttpApp } from './http-app.js';

/** What the resolvers wait for. */
const work = { reached: 0, leave: () => {}, gate: Promise.resolve() };

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  books: { ...minute, rate: 3 },
  authors: { ...minute, rate: 5 },
  person: { ...minute, rate: 1, key: 'user' },
  partner: { ...minute, rate: 1, key: 'header:x-partner', onMissingKey: 'skip' },
  login: { ...minute, rate: 1, key: 'user', onMissingKey: 'refuse' },
  never: { ...minute, rate: 1, cost: 2 },
  slots: { algo: 'concurrency', limit: 2, ttl: '30s' },
  // A generator that waits for an event holds something for another `ttl` when its reader has left.
  streams: { algo: 'concurrency', limit: 1, ttl: '200ms' },
} satisfies Record<string, LimitDefinition>;

interface GraphqlContext {
  req: { user?: object; headers?: Record<string, string>; extra?: { request: { headers: Record<string, string> } } };
}

@Injectable()
class HeaderAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { req } = GqlExecutionContext.create(context).getContext<GraphqlContext>();
    const user = (req.headers ?? req.extra?.request.headers)?.['x-user'];
    if (user !== undefined) req.user = { id: user };
    return true;
  }
}

@Resolver()
class LibraryResolver {
  @Query(() => Int, { nullable: true })
  @RateLimit('books')
  books(@RateLimitDecision() decision: CheckResult) {
    return decision.tightest.remaining;
  }

  @Query(() => Int, { nullable: true })
  @RateLimit('authors')
  authors(@Args('born', { type: () => Int, nullable: true }) born?: number) {
    return born;
  }

  @Query(() => Int)
  free() {
    return 0;
  }

  @Query(() => Int, { nullable: true })
  @UseGuards(HeaderAuthGuard)
  @RateLimit('person')
  person() {
    return 1;
  }

  @Query(() => Int, { nullable: true })
  @RateLimit('partner')
  partner() {
    return 1;
  }

  @Query(() => Int, { nullable: true })
  @RateLimit('login')
  login() {
    return 1;
  }

  @Query(() => Int, { nullable: true })
  @RateLimit('never')
  never() {
    return 1;
  }

  @Query(() => Int, { nullable: true })
  @RateLimit('slots')
  async slow() {
    work.reached++;
    await work.gate;
    return 1;
  }

  @Mutation(() => Int)
  @RateLimit('books')
  addBook() {
    return 1;
  }

  @Subscription(() => Int)
  @UseGuards(HeaderAuthGuard)
  @RateLimit('authors', 'person')
  count() {
    return numbers();
  }

  @Subscription(() => Int)
  @RateLimit('streams')
  endless() {
    return endless();
  }

  @Subscription(() => Int)
  @RateLimit('slots')
  async *working() {
    yield { working: 1 };
    work.reached++;
    await work.gate;
    yield { working: 2 };
  }
}

@ObjectType()
class Shelf {
  @Field(() => Int)
  number!: number;
}

@Resolver(() => Shelf)
class ShelfResolver {
  @Query(() => [Shelf])
  shelves() {
    return [1, 2, 3, 4].map((number) => ({ number }));
  }

  @ResolveField(() => Int, { nullable: true })
  @RateLimit('books', 'slots')
  books(@Parent() { number }: Shelf) {
    return number;
  }
}

async function* numbers() {
  yield { count: 1 };
  yield { count: 2 };
}

async function* endless() {
  yield { endless: 1 };
  await new Promise(() => {});
}

interface Answer {
  readonly data?: Record<string, number | null> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: object; readonly path?: string[] }[];
}

const CLIENT = 'ip:127.0.0.1';

/** What is told of a lease depends on how long leases were held. */
const aWhile = expect.any(Number) as unknown as number;

const refusal = (path: string, limits: string[], retryAfterMs: number | null) =>
  expect.objectContaining({
    message: 'Too many requests',
    path: [path],
    extensions: { code: 'RATE_LIMITED', retryAfterMs, limits },
  });

/** What an app has to add on Fastify for headers: Apollo's context does not know the reply there. */
const withReply: Partial<ApolloDriverConfig> = { context: (req: unknown, reply: unknown) => ({ req, reply }) };

let app: HttpApp | undefined;
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  work.leave();
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await app?.close();
  app = undefined;
});

interface Start {
  readonly graphql?: Partial<ApolloDriverConfig>;
  readonly limits?: RateLimitModuleOptions;
  readonly providers?: never[];
}

async function start(framework: Framework, { graphql, limits, providers = [] }: Start = {}) {
  work.reached = 0;
  work.gate = new Promise((resolve) => (work.leave = resolve));
  const started = await HttpApp.start(framework, {
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        graphiql: false,
        subscriptions: { 'graphql-ws': true },
        ...(framework === 'fastify' ? withReply : {}),
        ...graphql,
      }),
    ],
    providers: [LibraryResolver, ShelfResolver, ...providers],
    limits: { define, ...limits },
  });
  app = started;
  const service = started.nest.get(LimiterService);
  const post = (query: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
    fetch(`${started.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
      signal: signal ?? null,
    });
  return {
    app: started,
    post,
    ask: async (query: string, headers?: Record<string, string>) =>
      (await (await post(query, headers)).json()) as Answer,
    left: async (name: string, key = CLIENT) => (await service.for(name).peek(key)).remaining,
    /** A connection of graphql-ws. */
    connect: (headers: Record<string, string> = {}) => {
      class WithHeaders extends WebSocket {
        constructor(url: string, protocols: string[]) {
          super(url, protocols, { headers });
        }
      }
      const url = `${started.url.replace('http', 'ws')}/graphql`;
      const client = createClient({ url, webSocketImpl: WithHeaders, retryAttempts: 0 });
      cleanups.push(() => client.dispose());
      return client;
    },
  };
}

describe.each(frameworks)('GraphQL over %s', (framework) => {
  it('refuses a field with the code RATE_LIMITED, and answers the others', async () => {
    const { ask, app, left } = await start(framework);
    expect(await ask('{ books }')).toEqual({ data: { books: 2 } });
    expect(await ask('{ books free }')).toEqual({ data: { books: 1, free: 0 } });
    expect(await ask('mutation { addBook }')).toEqual({ data: { addBook: 1 } });
    app.clock.advanceMs(15_000);
    expect(await ask('{ books free }')).toEqual({
      data: { books: null, free: 0 },
      errors: [refusal('books', ['books'], 45_000)],
    });
    expect(await ask('mutation { addBook }')).toEqual({ data: null, errors: [refusal('addBook', ['books'], 45_000)] });
    expect(await left('books')).toBe(0);
    app.clock.advanceMs(45_000);
    expect(await ask('{ books }')).toEqual({ data: { books: 2 } });
  });

  it('checks each field at once and by itself', async () => {
    const { ask, app, left } = await start(framework);
    const check = jest.spyOn(app.store, 'check');
    expect(await ask('{ one: books two: books authors(born: 1903) }')).toEqual({
      data: { one: 2, two: 1, authors: 1903 },
    });
    expect(check.mock.calls.flatMap(([checks]) => checks.map(({ entries }) => entries.length))).toEqual([1, 1, 1]);
    const answer = await ask('{ three: books four: books authors(born: 1904) }');
    expect(answer).toEqual({
      data: { three: 0, four: null, authors: 1904 },
      errors: [refusal('four', ['books'], 60_000)],
    });
    expect([await left('books'), await left('authors')]).toEqual([0, 3]);
  });

  it('tells of all fields in the headers', async () => {
    const { post } = await start(framework, { limits: { limits: [{ ...minute, name: 'all', rate: 9 }] } });
    const told = async (query: string) => {
      const { headers, status } = await post(query);
      return [status, headers.get('ratelimit'), headers.get('retry-after')];
    };
    expect(await told('{ free }')).toEqual([200, '"all";r=8;t=60', null]);
    expect(await told('{ one: books two: books authors }')).toEqual([
      200,
      '"all";r=5;t=60, "books";r=1;t=60, "authors";r=4;t=60',
      null,
    ]);
    const [status, rateLimit, retryAfter] = await told('{ one: books two: books authors }');
    expect([status, retryAfter]).toEqual([200, '60']);
    expect(rateLimit).toBe('"all";r=3;t=60, "books";r=0;t=60, "authors";r=3;t=60');
  });

  it('counts fields of objects, if the app lets guards reach them, and warns if it does not', async () => {
    const query = '{ shelves { books } }';
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const bare = await start(framework);
    const told = warn.mock.calls.map(([message]) => String(message)).filter((message) => message.includes('GraphQL'));
    warn.mockRestore();
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/let no guard reach fields, so nothing checks .*\.books.*. Set fieldResolverEnhancers/);
    expect(await bare.ask(query)).toEqual({ data: { shelves: [1, 2, 3, 4].map((books) => ({ books })) } });
    await bare.app.close();
    const { ask, left } = await start(framework, {
      graphql: { fieldResolverEnhancers: ['guards', 'interceptors'] },
      limits: { define: { ...define, slots: { ...define.slots, limit: 4 } } },
    });
    expect(await ask(query)).toMatchObject({
      data: { shelves: [{ books: 1 }, { books: 2 }, { books: 3 }, { books: null }] },
      errors: [{ path: ['shelves', 3, 'books'], extensions: { code: 'RATE_LIMITED', limits: ['books'] } }],
    });
    await until(async () => (await left('slots')) === 4);
  });

  it('counts by user, once a later guard has found one, and by header', async () => {
    const { ask } = await start(framework);
    const [ada, bob] = [{ 'x-user': 'ada' }, { 'x-user': 'bob' }];
    expect(await ask('{ person }', ada)).toEqual({ data: { person: 1 } });
    expect(await ask('{ person }', ada)).toMatchObject({ errors: [refusal('person', ['person'], 60_000)] });
    expect(await ask('{ person }', bob)).toEqual({ data: { person: 1 } });
    const partner = { 'x-partner': 'secret' };
    expect(await ask('{ partner }', partner)).toEqual({ data: { partner: 1 } });
    expect(await ask('{ partner }', partner)).toMatchObject({ errors: [refusal('partner', ['partner'], 60_000)] });
    expect(await ask('{ partner }')).toEqual({ data: { partner: 1 } });
  });

  it('reports other errors with the codes of Nest', async () => {
    const { ask } = await start(framework);
    expect(await ask('{ login }')).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(await ask('{ never }')).toMatchObject({ errors: [refusal('never', ['never'], null)] });
  });

  it('holds something until the response has ended, for many fields at once', async () => {
    const warned = jest.fn();
    process.on('warning', warned);
    cleanups.push(() => process.off('warning', warned));
    const { ask, post, left } = await start(framework, {
      limits: { define: { ...define, slots: { ...define.slots, limit: 12 } } },
    });
    const fields = Array.from({ length: 12 }, (_, index) => `f${index}: slow`).join(' ');
    const asked = ask(`{ ${fields} }`);
    await until(() => work.reached === 12);
    expect(await ask('{ slow }')).toMatchObject({ errors: [refusal('slow', ['slots'], aWhile)] });
    work.leave();
    expect((await asked).errors).toBeUndefined();
    await until(async () => (await left('slots')) === 12);
    work.gate = new Promise((resolve) => (work.leave = resolve));
    const leaving = new AbortController();
    const aborted = post('{ slow }', {}, leaving.signal).catch(() => undefined);
    await until(() => work.reached === 13);
    expect(await left('slots')).toBe(11);
    leaving.abort();
    await aborted;
    expect(await left('slots')).toBe(11);
    work.leave();
    await until(async () => (await left('slots')) === 12);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned).not.toHaveBeenCalled();
  });

  it('does without a response, and still counts', async () => {
    const { ask, post, left } = await start(framework, {
      graphql: { context: (first: { req?: object }) => ({ req: withoutResponse(first.req ?? first) }) },
    });
    for (const books of [2, 1, 0]) expect(await ask('{ books }')).toEqual({ data: { books } });
    expect(await ask('{ books }')).toMatchObject({ errors: [refusal('books', ['books'], 60_000)] });
    expect((await post('{ books }')).headers.get('ratelimit')).toBeNull();
    expect(await ask('{ slow: person }')).toEqual({ data: { slow: 1 } });
    work.leave();
    expect(await ask('{ slow }')).toEqual({ data: { slow: 1 } });
    await until(async () => (await left('slots')) === 2);
  });

  describe('subscriptions', () => {
    it('are counted as they begin, by address, header or user of their connection', async () => {
      const { connect, left } = await start(framework);
      const query = 'subscription { count }';
      const ada = connect({ 'x-user': 'ada' });
      expect(await all(ada.iterate({ query }))).toEqual([{ data: { count: 1 } }, { data: { count: 2 } }]);
      expect(await left('authors')).toBe(4);
      expect(await left('person', 'user:ada')).toBe(0);
      const [refused] = await all(ada.iterate({ query }));
      expect(refused).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED', retryAfterMs: 60_000 } }] });
      const bob = connect({ 'x-user': 'bob' });
      expect(await all(bob.iterate({ query }))).toHaveLength(2);
    });

    it('hold something until their client ends them or goes away', async () => {
      const { connect, left } = await start(framework);
      const query = 'subscription { endless }';
      for (const end of ['return', 'dispose'] as const) {
        const client = connect();
        const stream = client.iterate({ query });
        expect(await stream.next()).toMatchObject({ value: { data: { endless: 1 } } });
        expect(await left('streams')).toBe(0);
        expect(await all(connect().iterate({ query }))).toMatchObject([
          { errors: [{ extensions: { code: 'RATE_LIMITED', limits: ['streams'] } }] },
        ]);
        if (end === 'return') await stream.return?.(undefined);
        else await client.dispose();
        await until(async () => (await left('streams')) === 1);
      }
    });

    it('hold something while their generator is at work, though their client has left', async () => {
      const { connect, left } = await start(framework);
      for (let round = 1; round <= 5; round++) {
        const client = connect();
        const stream = client.iterate({ query: 'subscription { working }' });
        const first = await stream.next();
        expect('errors' in first.value).toBe(round > 2);
        await until(() => work.reached === Math.min(round, 2));
        await client.dispose();
      }
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect([work.reached, await left('slots')]).toEqual([2, 0]);
      work.leave();
      await until(async () => (await left('slots')) === 2);
    });
  });
});

it('filters of the app get the exception itself', async () => {
  const caught: unknown[] = [];
  @Catch(RateLimitExceededException)
  class Filter implements ExceptionFilter {
    catch(exception: unknown) {
      caught.push(exception);
      return exception;
    }
  }
  const { ask } = await start('express', { providers: [{ provide: APP_FILTER, useClass: Filter } as never] });
  await ask('{ never }');
  expect(caught).toEqual([expect.any(RateLimitExceededException)]);
  expect((caught[0] as RateLimitExceededException).getStatus()).toBe(429);
});

describe('the middleware', () => {
  @Resolver()
  class ReportsResolver {
    @Query(() => String)
    report() {
      return 'report';
    }
  }

  it('counts a request once, whatever it asks for', async () => {
    const flood: LimitDefinition = { ...minute, name: 'flood', rate: 2, phase: 'middleware' };
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
    const app = await HttpApp.start('express', {
      imports: [graphql],
      providers: [ReportsResolver],
      limits: { limits: [flood, { ...minute, name: 'guarded', rate: 9 }] },
      configure: (nest) => void nest.use(rateLimitMiddleware(nest)),
    });
    const ask = () =>
      fetch(`${app.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query: '{ a: report b: report c: report }' }),
      });
    const first = await ask();
    expect(await first.json()).toEqual({ data: { a: 'report', b: 'report', c: 'report' } });
    expect(first.headers.get('ratelimit')).toBe('"flood";r=1;t=60, "guarded";r=6;t=60');
    expect([(await ask()).status, (await ask()).status]).toEqual([200, 429]);
    await app.close();
  });
});

/** What a context may hold of a request: enough to count, and nowhere to set a header. */
function withoutResponse(req: object): object {
  const { ip, headers } = req as { ip: string; headers: object };
  return { ip, headers };
}

async function all(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const parts: unknown[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}
