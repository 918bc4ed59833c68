import { afterAll, afterEach, describe, expect, it, jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type CanActivate, type ExecutionContext, Injectable, Logger, Module, UseGuards } from '@nestjs/common';
import {
  Args,
  Directive,
  GqlExecutionContext,
  GraphQLModule,
  Int,
  Mutation,
  Query,
  Resolver,
  Subscription,
  TypeMetadataStorage,
} from '@nestjs/graphql';
import { Test } from '@nestjs/testing';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import {
  RateLimitApolloPlugin,
  RateLimitGraphqlModule,
  type RateLimitGraphqlOptions,
} from '../../../lib/integrations/graphql/index.js';
import {
  type CheckResult,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitConfigError,
  RateLimitDecision,
  RateLimitModule,
  SkipRateLimit,
} from '../../../lib/index.js';
import { variants } from '../../support/tier.js';
import { until } from '../../support/time/until.js';
import { GraphqlApp, type GraphqlAppOptions, type GraphqlServer, servers } from './graphql-app.js';

// Specs of one worker share the types of their schemas.
afterAll(() => TypeMetadataStorage.clear());

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  orders: { ...minute, rate: 5 },
  mails: { ...minute, rate: 5 },
  people: { ...minute, rate: 3, key: 'user' },
  sized: {
    ...minute,
    rate: 10,
    cost: (context) => GqlExecutionContext.create(context).getArgs<{ count: number }>().count,
  },
  failures: { ...minute, rate: 4, count: 'failed' },
  slots: { algo: 'concurrency', limit: 3, ttl: '30s' },
  traffic: { ...minute, rate: 4, cost: { by: 'bytes', per: '1kB' } },
  login: { ...minute, rate: 1, key: 'user', onMissingKey: 'refuse', phase: 'guard' },
  shadowed: { ...minute, rate: 1, mode: 'shadow' },
} satisfies Record<string, LimitDefinition>;

/** What resolvers did, and what they wait for. */
const work = { ran: [] as string[], leave: () => {}, gate: Promise.resolve() };

@Injectable()
class HeaderAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { req } = GqlExecutionContext.create(context).getContext<{ req: { headers: object; user?: object } }>();
    const user = (req.headers as Record<string, string>)['x-user'];
    if (user !== undefined) req.user = { id: user };
    return true;
  }
}

@Resolver()
class PublicResolver {
  @Query(() => String)
  @RateLimit('orders')
  users() {
    return 'public';
  }
}

@Resolver()
class AdminResolver {
  @Query(() => String)
  @RateLimit('mails')
  users() {
    return 'admin';
  }
}

@Module({ providers: [PublicResolver] })
class PublicModule {}

@Module({ providers: [AdminResolver] })
class AdminModule {}

@Resolver()
class ShopResolver {
  @Mutation(() => Int)
  @RateLimit('orders')
  order(@RateLimitDecision() { tightest }: CheckResult) {
    work.ran.push('order');
    return tightest.remaining;
  }

  @Mutation(() => Int)
  @RateLimit('orders', 'mails')
  mail() {
    work.ran.push('mail');
    return 1;
  }

  @Mutation(() => Int)
  @UseGuards(HeaderAuthGuard)
  @RateLimit('people')
  befriend() {
    work.ran.push('befriend');
    return 1;
  }

  @Mutation(() => Int)
  @RateLimit('sized')
  buy(@Args('count', { type: () => Int, defaultValue: 2 }) count: number) {
    work.ran.push('buy');
    return count;
  }

  @Mutation(() => Int)
  @RateLimit('mails')
  fail() {
    throw new Error('it fails');
  }

  @Query(() => Int, { nullable: true })
  @RateLimit('failures')
  checked(@Args('fails', { nullable: true }) fails?: boolean) {
    if (fails === true) throw new Error('it fails');
    return 1;
  }

  @Query(() => Int, { nullable: true })
  @RateLimit('slots')
  async slow() {
    work.ran.push('slow');
    await work.gate;
    return 1;
  }

  @Query(() => Int)
  @RateLimit('login')
  login() {
    return 1;
  }

  @Query(() => Int)
  @RateLimit('shadowed')
  shadowed() {
    return 1;
  }

  @Query(() => Int, { name: 'renamed' })
  @RateLimit('orders')
  named() {
    return 1;
  }

  @Subscription(() => Int)
  async *ticks() {
    yield { ticks: 1 };
  }

  @Query(() => Int)
  @SkipRateLimit()
  free() {
    return 0;
  }
}

/** A refusal of an operation, or of a field. */
const refusal = (limits: readonly string[], retryAfterMs: number | null = 60_000) => ({
  message: 'Too many requests',
  extensions: expect.objectContaining({ code: 'RATE_LIMITED', retryAfterMs, limits }) as object,
});

/** A context that knows the user. */
const withUser = (one: { req?: object; headers?: object }, reply?: object) => {
  const req = (one.req ?? one) as { headers: Record<string, string>; user?: object };
  req.user = { id: req.headers['x-user'] };
  return { req, reply };
};

let app: GraphqlApp | undefined;
afterEach(async () => {
  work.leave();
  await app?.close();
  app = undefined;
  work.ran = [];
});

/** An app that is asked over graphql-ws. */
const startWithSockets = async (operations: RateLimitGraphqlOptions = {}) => {
  app = await GraphqlApp.start('Apollo on Express', {
    providers: [ShopResolver],
    limits: { define: { ...define, points: { ...minute, rate: 25 } } },
    operations,
    graphql: { subscriptions: { 'graphql-ws': true } },
  });
  const client = createClient({
    url: app.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  const ask = async (query: string) => {
    for await (const answer of client.iterate({ query })) return answer;
    return undefined;
  };
  return { shop: app, ask, client };
};

/** Starts an app that may fail to. */
async function startUp(
  options: Pick<GraphqlAppOptions, 'providers' | 'operations'>,
  server: GraphqlServer = servers[0],
) {
  const started = await GraphqlApp.start(server, { limits: { define }, ...options });
  await started.close();
}

describe.each(variants(servers))('an operation on %s', (server) => {
  const start = async (options: Partial<GraphqlAppOptions> = {}) => {
    work.gate = new Promise((resolve) => (work.leave = resolve));
    app = await GraphqlApp.start(server, {
      providers: [ShopResolver],
      ...options,
      limits: { define, ...options.limits },
    });
    return app;
  };
  it.each([false, true])('runs nothing if one of its limits refuses (on Redis: %s)', async (onRedis) => {
    const shop = await start({ onRedis });
    expect(await shop.ask('mutation { a: order b: order c: mail d: order }')).toMatchObject({
      data: { a: 1, b: 1, c: 1, d: 1 },
    });
    expect(work.ran).toEqual(['order', 'order', 'mail', 'order']);
    work.ran = [];
    const refused = await shop.ask('mutation { order mail }');
    expect(refused.data ?? null).toBeNull();
    expect(refused.errors).toHaveLength(1);
    const { message, extensions, path } = refused.errors![0]!;
    expect([message, path]).toEqual(['Too many requests', undefined]);
    expect(extensions).toMatchObject({ code: 'RATE_LIMITED', limits: ['orders'] });
    expect(refused.status).toBe(200);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(59);
    expect(refused.headers.get('ratelimit')).toMatch(/^"orders";r=1;t=\d+, "mails";r=4;t=\d+$/);
    expect(work.ran).toEqual([]);
    expect([await shop.left('orders'), await shop.left('mails')]).toEqual([1, 4]);
    expect(await shop.ask('mutation { order }')).toMatchObject({ data: { order: 0 } });
  });

  it('asks the store once, for all limits of the module, too', async () => {
    const shop = await start({ limits: { define, limits: [{ ...minute, name: 'all', rate: 100 }] } });
    const asked: number[] = [];
    const decisions = shop.app.nest.get(LimiterService).decisions$.subscribe(({ cost }) => asked.push(cost));
    await shop.ask('mutation { a: order b: order mail buy(count: 4) }');
    decisions.unsubscribe();
    expect(asked.toSorted((a, b) => a - b)).toEqual([1, 3, 4, 4]);
    expect(await shop.left('orders')).toBe(2);
  });

  it('counts aliases, fragments and variables as they will run', async () => {
    const shop = await start();
    const query = `
      query Other { renamed }
      mutation Mine($count: Int = 3, $no: Boolean!) {
        ...Orders ...Orders
        ... on Mutation { again: order order }
        left: order @include(if: $no)
        out: order @skip(if: true)
        buy(count: $count)
      }
      fragment Orders on Mutation { order two: order }`;
    const sent = { operationName: 'Mine', variables: { no: false } };
    expect((await shop.ask(query, sent)).data).toEqual({ order: 2, two: 2, again: 2, buy: 3 });
    expect([await shop.left('orders'), await shop.left('sized')]).toEqual([2, 7]);
    await shop.ask(query, { operationName: 'Mine', variables: { no: false, count: 5 } });
    // It was refused for its orders.
    expect([await shop.left('orders'), await shop.left('sized')]).toEqual([2, 7]);
    expect(await shop.ask(query, { operationName: 'Other' })).toMatchObject({ data: { renamed: 1 } });
    expect(await shop.left('orders')).toBe(1);
  });

  it('costs nothing if it does not run, or selects nothing that has limits', async () => {
    const shop = await start({ limits: { define: { ...define, orders: { ...minute, rate: 1 } } } });
    const query = 'mutation ($n: Int!) { order buy(count: $n) }';
    expect((await shop.ask(query, { variables: { n: 'x' } })).errors).toHaveLength(1);
    expect((await shop.ask('mutation { order order(x: 1) }')).errors).toBeDefined();
    expect((await shop.ask('mutation { ...A } fragment A on Mutation { ...A order }')).errors).toBeDefined();
    expect(await shop.ask('{ __schema { queryType { name } } __typename free }')).toMatchObject({ data: { free: 0 } });
    expect([await shop.left('orders'), await shop.left('sized')]).toEqual([1, 10]);
  });

  it('gives back what fields did not use, since another one has failed', async () => {
    const shop = await start();
    expect((await shop.ask('mutation { order fail second: order third: order }')).data ?? null).toBeNull();
    expect(work.ran).toEqual(['order']);
    await until(async () => (await shop.left('orders')) === 4);
    expect(await shop.left('mails')).toBe(4);
  });

  it('counts by user: together, once the first of its guards has found one', async () => {
    const shop = await start();
    const ada = { headers: { 'x-user': 'ada' } };
    expect((await shop.ask('mutation { a: befriend b: befriend }', ada)).data).toEqual({ a: 1, b: 1 });
    expect(await shop.left('people', 'user:ada')).toBe(1);
    work.ran = [];
    const refused = await shop.ask('mutation { a: befriend b: befriend }', ada);
    expect(refused.errors![0]).toMatchObject(refusal(['people']));
    expect(work.ran).toEqual([]);
    expect(await shop.left('people', 'user:ada')).toBe(1);
    expect((await shop.ask('mutation { befriend }', ada)).data).toEqual({ befriend: 1 });
    expect((await shop.ask('mutation { befriend }')).data).toEqual({ befriend: 1 });
    expect([await shop.left('people', 'user:ada'), await shop.left('people')]).toEqual([0, 2]);
  });

  it('counts by a user that the app knew before', async () => {
    const shop = await start({ graphql: { context: withUser } });
    const ada = { headers: { 'x-user': 'ada' } };
    expect((await shop.ask('mutation { befriend order }', ada)).data).toEqual({ befriend: 1, order: 4 });
    const refused = await shop.ask('mutation { order a: befriend b: befriend c: befriend }', ada);
    expect(refused.errors).toEqual([refusal(['people'])]);
    expect(work.ran).toEqual(['befriend', 'order']);
    expect([await shop.left('orders'), await shop.left('people', 'user:ada')]).toEqual([4, 2]);
  });

  it('settles each field by its own outcome', async () => {
    const shop = await start();
    await shop.ask('{ a: checked b: checked(fails: true) c: checked }');
    await until(async () => (await shop.left('failures')) === 3);
  });

  it('holds what its fields hold until all of them are done', async () => {
    const shop = await start();
    const asked = shop.ask('{ a: slow b: slow }');
    await until(() => work.ran.length === 2);
    expect(await shop.left('slots')).toBe(1);
    expect((await shop.ask('{ a: slow b: slow }')).errors![0]!.extensions).toMatchObject({ limits: ['slots'] });
    work.leave();
    expect((await asked).data).toEqual({ a: 1, b: 1 });
    await until(async () => (await shop.left('slots')) === 3);
  });

  it('is refused for a key that is missing, and never by a limit in shadow mode', async () => {
    const shop = await start();
    const { errors } = await shop.ask('{ login free }');
    expect(errors).toHaveLength(1);
    expect((await shop.ask('{ a: shadowed b: shadowed }')).data).toEqual({ a: 1, b: 1 });
  });

  it('is refused for its address alone, before anything is counted', async () => {
    const shop = await start({ limits: { define, lists: { deny: [{ ip: '127.0.0.1' }] } } });
    const { errors } = await shop.ask('mutation { order }');
    expect(errors![0]!.extensions['code']).toBe('FORBIDDEN');
    expect(work.ran).toEqual([]);
  });

  it('is decided by itself in a batch', async () => {
    const shop = await start({ graphql: { allowBatchedHttpRequests: true, allowBatchedQueries: true } });
    const query = 'mutation { a: order b: order }';
    const response = await shop.post([{ query }, { query }, { query }]);
    const answers = (await response.json()) as { data?: unknown }[];
    expect(answers.filter(({ data }) => data != null)).toHaveLength(2);
    expect(work.ran).toHaveLength(4);
    expect(response.headers.get('retry-after')).toBe('60');
  });
});

describe('an operation that no plugin sees', () => {
  it('is decided as its first field asks the guard: over a WebSocket', async () => {
    const { shop, ask, client } = await startWithSockets();
    expect(await ask('mutation { a: order b: order c: order d: order }')).toMatchObject({ data: { d: 1 } });
    work.ran = [];
    const refused = await ask('mutation { a: order b: order }');
    expect(refused!.errors).toMatchObject([{ path: ['a'], extensions: { code: 'RATE_LIMITED', limits: ['orders'] } }]);
    const query = await ask('{ a: renamed free b: renamed }');
    expect(query!.errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED', limits: ['orders'] } }]);
    expect(work.ran).toEqual([]);
    expect(await shop.left('orders')).toBe(1);
    await client.dispose();
  });

  it('costs the points that it asks for', async () => {
    const { shop, ask, client } = await startWithSockets({ cost: { limit: 'points' } });
    expect((await ask('mutation { a: order b: mail }'))!.errors).toBeUndefined();
    expect(await shop.left('points')).toBe(5);
    expect((await ask('mutation { order }'))!.errors).toMatchObject([{ extensions: { limits: ['points'] } }]);
    expect([await shop.left('points'), await shop.left('orders')]).toEqual([5, 3]);
    expect((await ask('subscription { ticks }'))!.errors).toBeUndefined();
    expect(await shop.left('points')).toBe(4);
    await client.dispose();
  });
});

describe('the options', () => {
  it.each<[unknown, string | RegExp]>([
    [null, 'RateLimitGraphqlModule.forRoot: expected an object of options, received null'],
    [{ costs: 1 }, "RateLimitGraphqlModule.forRoot: unknown option 'costs'"],
    [{ cost: 5 }, 'RateLimitGraphqlModule.forRoot.cost: expected an object of options, received 5'],
    [{ cost: {} }, 'RateLimitGraphqlModule.forRoot.cost.limit: missing, expected the name of a defined limit'],
    [
      { cost: { limit: 7 } },
      /RateLimitGraphqlModule\.forRoot\.cost\.limit: expected the name of a defined limit.+, received 7/,
    ],
    [{ cost: { limit: [] } }, /RateLimitGraphqlModule\.forRoot\.cost\.limit: expected .+, received \[\]/],
    [{ cost: { limit: 'orders', points: 1 } }, "unknown option 'points'"],
    [{ cost: { limit: 'orders', object: -1 } }, 'object: expected a number >= 0, received -1'],
    [{ cost: { limit: 'orders', scalar: NaN } }, 'scalar: expected a number >= 0, received NaN'],
    [{ cost: { limit: 'orders', mutation: '10' } }, "mutation: expected a number >= 0, received '10'"],
    [{ cost: { limit: 'orders', listSize: 0 } }, 'listSize: expected a whole number >= 1, received 0'],
    [{ cost: { limit: 'orders', weight: 3 } }, 'weight: expected a function of a field, received 3'],
    [{ cost: { limit: 'none' } }, "'none'"],
    [{ cost: { limit: ['orders', 'orders'] } }, "the limit 'orders' is in the list twice"],
    [
      { cost: { limit: 'failures' } },
      "cost.limit: limit 'failures' has the option 'count', but points are settled by the result. Use a limit that counts all requests",
    ],
    [
      { cost: { limit: 'traffic' } },
      "cost.limit: limit 'traffic' has a cost by bytes or duration, but points are settled by the result. Use a limit with another 'cost'",
    ],
    [
      { cost: { limit: 'slots' } },
      "cost.limit: limit 'slots' has algo 'concurrency', but points are not held. Use a limit that counts units",
    ],
  ])('%j is refused when the app starts', async (options, message) => {
    const error: unknown = await Promise.resolve()
      .then(() => startUp({ providers: [ShopResolver], operations: options as RateLimitGraphqlOptions }))
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RateLimitConfigError);
    expect((error as Error).message).toMatch(message);
  });

  it.each<[string, string]>([
    ['@cost(weight: "many")', "Query.costly: argument 'weight' of @cost: expected a number >= 0, received 'many'"],
    ['@cost(weight: -1)', "Query.costly: argument 'weight' of @cost: expected a number >= 0, received -1"],
    ['@cost', "Query.costly: argument 'weight' of @cost: expected a number >= 0, received undefined"],
    ['@listSize(assumedSize: "2")', "argument 'assumedSize' of @listSize: expected a whole number >= 0, received '2'"],
    [
      '@listSize(slicingArguments: ["most"])',
      "slicingArguments of @listSize: expected one of the field's arguments (first), received 'most'",
    ],
    ['@listSize(sizedFields: [1])', "argument 'sizedFields' of @listSize: expected a list of names, received [ 1 ]"],
  ])('%s is refused when the app starts', async (directive, message) => {
    @Resolver()
    class CostlyResolver {
      @Query(() => Int)
      @Directive(directive)
      costly(@Args('first', { type: () => Int, nullable: true }) first?: number) {
        return first;
      }
    }
    for (const server of ['Apollo on Express', 'Mercurius'] as const) {
      const started = startUp({ providers: [CostlyResolver], operations: { cost: { limit: 'orders' } } }, server);
      const error: unknown = await started.catch((thrown: unknown) => thrown);
      expect((error as Error).message).toContain(message);
    }
  });

  it('may come from a factory', async () => {
    const testing = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({ define }),
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true, graphiql: false }),
        RateLimitGraphqlModule.forRootAsync({ useFactory: () => ({ cost: { limit: 'orders', mutation: 4 } }) }),
      ],
      providers: [ShopResolver],
    }).compile();
    const nest = testing.createNestApplication();
    await nest.listen(0, '127.0.0.1');
    const ask = async (query: string) => {
      const headers = { 'content-type': 'application/json', connection: 'close' };
      const response = await fetch(`${await nest.getUrl()}/graphql`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ query }),
      });
      return (await response.json()) as { extensions: { cost: object } };
    };
    expect((await ask('mutation { buy }')).extensions.cost).toMatchObject({ requestedQueryCost: 4 });
    await nest.close();
    const wrong = RateLimitGraphqlModule.forRootAsync({ useFactory: () => ({ cost: 1 }) as never });
    await expect(
      Test.createTestingModule({ imports: [RateLimitModule.forRoot({ define }), wrong] }).compile(),
    ).rejects.toThrow('RateLimitGraphqlModule.forRootAsync.cost: expected an object of options, received 1');
  });

  it('have only the limits of their own server, where fields of several servers have the same name', async () => {
    const fields = { public: PublicModule, admin: AdminModule };
    const paths = Object.keys(fields) as (keyof typeof fields)[];
    const limits = RateLimitGraphqlModule.forRoot();
    const testing = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({ define }),
        PublicModule,
        AdminModule,
        limits,
        ...paths.map((path) =>
          GraphQLModule.forRootAsync<ApolloDriverConfig>({
            driver: ApolloDriver,
            imports: [limits],
            inject: [RateLimitApolloPlugin],
            useFactory: (plugin: RateLimitApolloPlugin) => {
              return { autoSchemaFile: true, path, include: [fields[path]], plugins: [plugin] };
            },
          }),
        ),
      ],
    }).compile();
    const nest = testing.createNestApplication();
    await nest.listen(0, '127.0.0.1');
    const url = await nest.getUrl();
    for (const [path, limit] of [
      ['public', 'orders'],
      ['admin', 'mails'],
    ]) {
      const response = await fetch(`${url}/${path}?query={users,again:users}`, {
        headers: { 'apollo-require-preflight': 'yes', connection: 'close' },
      });
      expect(await response.json()).toEqual({ data: { users: path, again: path } });
      expect(response.headers.get('ratelimit-policy')).toBe(`"${limit}";q=5;w=60`);
    }
    await nest.close();
  });

  it('need a RateLimitModule, and say so if no server has the plugin', async () => {
    const lonely = await Test.createTestingModule({ imports: [RateLimitGraphqlModule.forRoot()] }).compile();
    await expect(lonely.createNestApplication().init()).rejects.toThrow(
      'RateLimitGraphqlModule: RateLimitModule was not found. Add it to the imports of the app',
    );
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const without = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define }), RateLimitGraphqlModule.forRoot()],
    }).compile();
    const nest = without.createNestApplication();
    await nest.init();
    const warnings = warn.mock.calls.map(([text]) => String(text));
    warn.mockRestore();
    await nest.close();
    expect(warnings).toEqual([expect.stringContaining('no Apollo Server of @nestjs/apollo and no Mercurius')]);
  });
});
