import { createHash } from 'node:crypto';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { ApolloServerPluginInlineTraceDisabled } from '@apollo/server/plugin/disabled';
import { ApolloFederationDriver } from '@nestjs/apollo';
import { UseGuards } from '@nestjs/common';
import {
  Directive,
  Field,
  ID,
  Int,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  ResolveReference,
  Resolver,
  TypeMetadataStorage,
} from '@nestjs/graphql';
import {
  type LimitDefinition,
  LimiterService,
  MemoryStore,
  RateLimit,
  RateLimitGuard,
  RateLimitStoreError,
} from '../../../lib/index.js';
import { until } from '../../support/time/until.js';
import { GraphqlApp, type GraphqlAppOptions, servers } from './graphql-app.js';

// Specs of one worker share the types of their schemas.
afterAll(() => TypeMetadataStorage.clear());

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  orders: { ...minute, rate: 5 },
  shelves: { ...minute, rate: 3 },
  points: { ...minute, rate: 1000 },
  paced: { algo: 'leaky-bucket', rate: 10, interval: '1s', queue: 5 },
  team: { ...minute, rate: 5, key: 'header:x-team' },
  member: { ...minute, rate: 4, key: 'header:x-member', within: 'team' },
  strict: { ...minute, rate: 5, onStoreError: 'deny' },
  early: { ...minute, rate: 3, phase: 'guard' },
} satisfies Record<string, LimitDefinition>;

let ran: string[] = [];

@ObjectType()
class Rack {
  @Field(() => Int)
  number!: number;
}

@Resolver(() => Rack)
class ShelfResolver {
  @Query(() => [Rack])
  @RateLimit('early')
  shelves() {
    return [1, 2, 3].map((number) => ({ number }));
  }

  @ResolveField(() => Int, { nullable: true })
  @RateLimit('shelves')
  size(@Parent() { number }: Rack) {
    return number;
  }
}

@Resolver()
class ShopResolver {
  @Query(() => Int)
  @RateLimit('orders')
  orders() {
    ran.push('orders');
    return 1;
  }

  @Mutation(() => Int)
  @RateLimit(() => ({ ...minute, name: 'chosen', rate: 3 }))
  chosen() {
    ran.push('chosen');
    return 1;
  }

  @Mutation(() => Int)
  @UseGuards(RateLimitGuard)
  @RateLimit('orders')
  twice() {
    ran.push('twice');
    return 1;
  }

  @Mutation(() => Int)
  @RateLimit('paced')
  paced() {
    ran.push('paced');
    return 1;
  }

  @Mutation(() => Int)
  @RateLimit('member')
  share() {
    ran.push('share');
    return 1;
  }

  @Mutation(() => Int)
  @RateLimit('team')
  gather() {
    ran.push('gather');
    return 1;
  }

  @Mutation(() => Int)
  @RateLimit('strict')
  strict() {
    ran.push('strict');
    return 1;
  }
}

let app: GraphqlApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
  ran = [];
});

describe.each(servers)('an operation on %s', (server) => {
  const start = async (options: Partial<GraphqlAppOptions> = {}) => {
    app = await GraphqlApp.start(server, {
      providers: [ShopResolver, ShelfResolver],
      ...options,
      limits: { define, ...options.limits },
    });
    return app;
  };

  it('is decided together by limits that functions choose, whether there is a user or not', async () => {
    const shop = await start();
    expect((await shop.ask('mutation { a: chosen b: chosen }')).data).toEqual({ a: 1, b: 1 });
    const refused = await shop.ask('mutation { a: chosen b: chosen }');
    expect(refused.errors![0]!.extensions).toMatchObject({ code: 'RATE_LIMITED', limits: ['chosen'] });
    expect(ran).toHaveLength(2);
    expect((await shop.ask('mutation { a: chosen }')).data).toEqual({ a: 1 });
  });

  it('is charged once, though a guard is bound twice', async () => {
    const shop = await start();
    expect((await shop.ask('mutation { a: twice b: twice }')).data).toEqual({ a: 1, b: 1 });
    expect(await shop.left('orders')).toBe(3);
    expect((await shop.ask('mutation { a: twice b: twice c: twice d: twice }')).errors).toHaveLength(1);
    expect([ran.length, await shop.left('orders')]).toEqual([2, 3]);
  });

  it('leaves fields of objects to the guard', async () => {
    const shop = await start({ graphql: { fieldResolverEnhancers: ['guards', 'interceptors'] } });
    const query = '{ one: shelves { size } two: shelves { number } }';
    expect((await shop.ask(query)).data).toMatchObject({ one: [{ size: 1 }, { size: 2 }, { size: 3 }] });
    expect([await shop.left('early'), await shop.left('shelves')]).toEqual([1, 0]);
    expect((await shop.ask('{ shelves { size } }')).errors).toHaveLength(3);
    expect(await shop.left('early')).toBe(0);
  });

  it('waits for its turn as a whole, and gives it back if its client leaves', async () => {
    const shop = await start();
    const began = performance.now();
    expect((await shop.ask('mutation { a: paced b: paced c: paced }')).data).toEqual({ a: 1, b: 1, c: 1 });
    expect(performance.now() - began).toBeGreaterThanOrEqual(199);
    ran = [];
    shop.app.clock.advanceMs(10_000);
    const leaving = new AbortController();
    const query = 'mutation { a: paced b: paced c: paced d: paced }';
    const aborted = fetch(shop.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
      signal: leaving.signal,
    }).catch(() => undefined);
    await until(async () => (await shop.left('paced')) < 3);
    leaving.abort();
    await aborted;
    await until(async () => (await shop.left('paced')) > 2);
    expect(ran).toEqual([]);
  });

  it('charges limits that others are within for all fields', async () => {
    const shop = await start();
    const headers = { 'x-team': 'red', 'x-member': 'ada' };
    expect((await shop.ask('mutation { a: share b: share gather }', { headers })).data).toMatchObject({ gather: 1 });
    const refused = await shop.ask('mutation { a: share b: share gather }', { headers });
    expect(refused.errors![0]!.extensions).toMatchObject({ limits: ['team'] });
    expect((await shop.ask('mutation { a: share b: share }', { headers })).errors).toBeUndefined();
    expect(ran).toHaveLength(5);
  });

  it('does not run if the store fails and a limit denies that', async () => {
    class FailingStore extends MemoryStore {
      override check(): Promise<never> {
        return Promise.reject(new RateLimitStoreError('the store is down'));
      }
    }
    const shop = await start({ limits: { define, store: new FailingStore() } });
    const refused = await shop.ask('mutation { strict }');
    expect(refused.errors).toHaveLength(1);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(ran).toEqual([]);
  });

  it('is the same by GET', async () => {
    const shop = await start({ operations: { cost: { limit: 'points' } } });
    const response = await fetch(`${shop.url}?query=${encodeURIComponent('{ a: orders b: orders }')}`, {
      headers: { 'apollo-require-preflight': 'true' },
    });
    expect(await response.json()).toMatchObject({
      data: { a: 1, b: 1 },
      extensions: { cost: { requestedQueryCost: 1 } },
    });
    expect(await shop.left('orders')).toBe(3);
  });
});

it('is the same once Mercurius has compiled the document', async () => {
  app = await GraphqlApp.start('Mercurius', {
    providers: [ShopResolver],
    limits: { define: { ...define, orders: { ...minute, rate: 9 } } },
    operations: { cost: { limit: 'points' } },
    graphql: { jit: 1 },
  });
  const query = 'query ($on: Boolean!) { a: orders b: orders @include(if: $on) }';
  for (const left of [7, 5, 3, 1]) {
    const { data, cost } = await app.ask(query, { variables: { on: true } });
    expect([data, await app.left('orders')]).toEqual([{ a: 1, b: 1 }, left]);
    expect(cost).toMatchObject({ requestedQueryCost: 1, actualQueryCost: 1 });
  }
  expect((await app.ask(query, { variables: { on: true } })).errors![0]!.extensions).toMatchObject({
    limits: ['orders'],
  });
  expect((await app.ask(query, { variables: { on: false } })).data).toMatchObject({ a: 1 });
  expect(ran).toHaveLength(9);
});

it('a persisted query costs as the query does, and nothing while it is not known', async () => {
  app = await GraphqlApp.start('Apollo on Express', {
    providers: [ShopResolver],
    limits: { define },
    operations: { cost: { limit: 'points' } },
  });
  const query = '{ a: orders b: orders }';
  const sha256Hash = createHash('sha256').update(query).digest('hex');
  const persisted = { extensions: { persistedQuery: { version: 1, sha256Hash } } };
  const ask = async (body: object) => (await (await app!.post(body)).json()) as object;
  expect(await ask(persisted)).toMatchObject({ errors: [{ extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }] });
  expect(await app.left('orders')).toBe(5);
  expect(await ask({ query, ...persisted })).toMatchObject({ data: { a: 1 } });
  expect(await ask(persisted)).toMatchObject({ data: { b: 1 }, extensions: { cost: { actualQueryCost: 1 } } });
  expect([await app.left('orders'), await app.left('points')]).toEqual([1, 998]);
});

@ObjectType()
@Directive('@key(fields: "id")')
class Volume {
  @Field(() => ID)
  id!: string;

  @Field()
  title!: string;
}

@Resolver(() => Volume)
class BookResolver {
  @Query(() => [Volume])
  @RateLimit('orders')
  books() {
    return [];
  }

  @ResolveReference()
  @RateLimit('shelves')
  resolveReference({ id }: Volume) {
    ran.push(id);
    return { id, title: id };
  }
}

it('a subgraph counts the points of its entities, and each of them by itself', async () => {
  app = await GraphqlApp.start('Apollo on Express', {
    providers: [BookResolver],
    limits: { define },
    operations: { cost: { limit: 'points' } },
    graphql: {
      driver: ApolloFederationDriver,
      autoSchemaFile: { federation: 2 },
      plugins: [ApolloServerPluginInlineTraceDisabled()],
      fieldResolverEnhancers: ['guards', 'interceptors'],
    },
  });
  const query = 'query ($of: [_Any!]!) { _entities(representations: $of) { ... on Volume { title } } }';
  const of = ['a', 'b', 'c'].map((id) => ({ __typename: 'Volume', id }));
  const answer = await app.ask(query, { variables: { of } });
  expect(answer.data).toEqual({ _entities: [{ title: 'a' }, { title: 'b' }, { title: 'c' }] });
  expect(answer.cost).toMatchObject({ requestedQueryCost: 3, actualQueryCost: 3 });
  expect(await app.left('shelves')).toBe(0);
  expect((await app.ask(query, { variables: { of: of.slice(1) } })).errors).toHaveLength(2);
  expect((await app.ask('{ a: books { id } b: books { id } }')).errors).toBeUndefined();
  expect(await app.left('orders')).toBe(3);
  expect(ran).toEqual(['a', 'b', 'c']);
  const { decisions$ } = app.app.nest.get(LimiterService);
  const counted: number[] = [];
  const subscription = decisions$.subscribe(({ cost }) => counted.push(cost));
  await app.ask('{ a: books { id } b: books { id } }');
  subscription.unsubscribe();
  expect(counted.toSorted((a, b) => a - b)).toEqual([2, 20]);
});
