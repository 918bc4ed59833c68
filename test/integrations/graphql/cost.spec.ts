import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, type ExecutionContext, Injectable, UseGuards } from '@nestjs/common';
import {
  Args,
  createUnionType,
  Directive,
  Field,
  GqlExecutionContext,
  Int,
  InterfaceType,
  Mutation,
  ObjectType,
  Query,
  Resolver,
  TypeMetadataStorage,
} from '@nestjs/graphql';
import type { QueryCostOptions } from '../../../lib/integrations/graphql/index.js';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { variants } from '../../support/tier.js';
import { until } from '../../support/time/until.js';
import { GraphqlApp, type GraphqlAppOptions, servers } from './graphql-app.js';

// Specs of one worker share the types of their schemas.
afterAll(() => TypeMetadataStorage.clear());

const define = {
  points: { algo: 'token-bucket', rate: 10, interval: '1s', burst: 100 },
  hourly: { algo: 'fixed-window', rate: 1000, interval: '1h', key: 'header:x-app', onMissingKey: 'skip' },
  orders: { algo: 'fixed-window', rate: 1, interval: '1m' },
  own: { algo: 'fixed-window', rate: 20, interval: '1m', key: 'user' },
} satisfies Record<string, LimitDefinition>;

let ran: string[] = [];

@InterfaceType()
abstract class Titled {
  @Field()
  name!: string;
}

@ObjectType()
@Directive('@cost(weight: "2")')
class Poet {
  @Field()
  name!: string;

  @Field(() => [Poem])
  books!: Poem[];
}

@ObjectType({ implements: Titled })
class Poem extends Titled {
  @Field(() => Poet, { nullable: true })
  author?: Poet | null;

  @Field(() => Int, { nullable: true })
  @Directive('@cost(weight: "0.5")')
  rating?: number;

  @Field(() => Int)
  broken!: number;
}

@ObjectType({ implements: Titled })
class Song extends Titled {
  @Field(() => Poet)
  director!: Poet;
}

const Piece = createUnionType({
  name: 'Piece',
  types: () => [Poem, Song] as const,
  resolveType: (value: object) => ('director' in value ? Song : Poem),
});

@ObjectType()
class PoemEdge {
  @Field(() => Poem)
  node!: Poem;
}

@ObjectType()
class PoemConnection {
  @Field(() => [PoemEdge])
  edges!: PoemEdge[];

  @Field(() => Int)
  total!: number;
}

const author = (): Poet => ({ name: 'Ada', books: [] });
const book = (index = 0) => ({
  name: `Poem ${index}`,
  author: index === 0 ? author() : null,
  rating: 5,
  get broken(): number {
    throw new Error('broken');
  },
});
const list = <T>(length: number, make: (index: number) => T) => Array.from({ length }, (_, index) => make(index));

/** Finds the user of a request, as guards of apps do. */
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
@UseGuards(HeaderAuthGuard)
class LibraryResolver {
  @Query(() => [Poem])
  books(@Args('first', { type: () => Int, nullable: true }) first?: number | null) {
    ran.push('books');
    return list(Math.min(3, Math.abs(first ?? 3)), book);
  }

  @Query(() => [Poem], { nullable: true })
  @Directive('@listSize(assumedSize: 20, slicingArguments: ["most"])')
  found(@Args('most', { type: () => Int, defaultValue: 4 }) most: number) {
    return list(Math.min(most, 2), book);
  }

  @Query(() => PoemConnection)
  shelf(@Args('first', { type: () => Int }) first: number): PoemConnection {
    return { total: 2, edges: list(Math.min(2, first), (index) => ({ node: book(index) })) };
  }

  @Query(() => Poem, { nullable: true })
  @Directive('@cost(weight: "7")')
  best() {
    return book();
  }

  @Query(() => [Piece])
  works(@Args('limit', { type: () => Int }) limit: number) {
    return list(limit, (index) => (index === 0 ? { name: 'Song', director: author() } : book(index)));
  }

  @Query(() => Int)
  scalar() {
    return 1;
  }

  @Mutation(() => Poem)
  @RateLimit('orders')
  addBook() {
    ran.push('addBook');
    return book();
  }

  @Mutation(() => Int)
  count() {
    ran.push('count');
    return 1;
  }
}

/** Operations, the points that they ask for, and those of what they return. */
const operations: readonly [string, number, number][] = [
  ['{ scalar }', 1, 1],
  ['{ __schema { types { name fields { name } } } __typename }', 1, 1],
  ['{ books(first: 5) { name author { name } rating } }', 5 * (1 + 2 + 0.5), Math.ceil(3 + 2 * 3 + 1.5)],
  ['{ books { name } }', 10, 3],
  ['{ books(first: null) { name } }', 10, 3],
  ['{ books(first: -5) { name } }', 10, 3],
  ['{ books(first: 0) { name } }', 1, 1],
  ['{ one: books(first: 1) { name } two: books(first: 2) { name } }', 3, 3],
  ['{ books(first: 2) { name } books(first: 2) { author { name } } }', 2 * 3, 2 + 4],
  ['{ found { name } }', 4, 2],
  ['{ found(most: 6) { name } }', 6, 2],
  ['{ shelf(first: 10) { total edges { node { name } } } }', 1 + 10 * 2, 1 + 2 * 2],
  ['{ best { name author { name } } }', 9, 9],
  ['{ works(limit: 4) { __typename ... on Song { director { name } } ... on Poem { name } } }', 12, 3 + 3],
  [
    '{ works(limit: 4) { ... on Song { director { name } } ... on Poem { name author { name } rating } } }',
    14,
    3 + 3 * 3.5,
  ],
  ['{ works(limit: 4) { ... on Titled { name } } }', 4, 4],
  ['mutation { count }', 10, 10],
  ['mutation { addBook { name author { name } } }', 12, 12],
  ['{ best { name } ...F } fragment F on Query { scalar best { rating } }', 8, 8],
  ['{ best { name } again: best @include(if: false) { name } books @skip(if: true) { name } }', 7, 7],
];

/** What a response says of the limit `points`. */
const costs = (requestedQueryCost: number, actualQueryCost: number | null, currentlyAvailable: number) => ({
  requestedQueryCost,
  actualQueryCost,
  throttleStatus: { limit: 'points', maximumAvailable: 100, currentlyAvailable, restoreRate: 10 },
});

let app: GraphqlApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
  ran = [];
});

// Quick tests of whole operations run on Apollo.
describe.each(variants(servers.toReversed()))('the cost of an operation on %s', (server) => {
  const start = async (cost: Partial<QueryCostOptions> = {}, options: Partial<GraphqlAppOptions> = {}) => {
    app = await GraphqlApp.start(server, {
      providers: [LibraryResolver],
      operations: { cost: { limit: 'points', ...cost } },
      ...options,
      limits: { define, ...options.limits },
      graphql: { buildSchemaOptions: { orphanedTypes: [Song] }, ...options.graphql },
    });
    return app;
  };
  it.each([false, true])(
    'is reserved before it runs, and settled at what it returned (on Redis: %s)',
    async (onRedis) => {
      const rate = { ...define.points, rate: 1, interval: '1h' } as const;
      const library = await start({}, { onRedis, limits: { define: { ...define, points: rate } } });
      const { data, cost } = await library.ask('{ books(first: 50) { name } }');
      expect(data!['books']).toHaveLength(3);
      expect(cost).toEqual({
        requestedQueryCost: 50,
        actualQueryCost: 3,
        throttleStatus: { limit: 'points', maximumAvailable: 100, currentlyAvailable: 97, restoreRate: 0.000277778 },
      });
      await until(async () => (await library.left('points')) === 97);
      ran = [];
      const refused = await library.ask('{ books(first: 98) { name } }');
      expect(refused.data ?? null).toBeNull();
      expect(refused.errors).toHaveLength(1);
      expect(refused.errors![0]!.extensions).toMatchObject({ code: 'RATE_LIMITED', limits: ['points'] });
      const wait = refused.errors![0]!.extensions['retryAfterMs'] as number;
      expect([wait > 3_590_000, wait <= 3_600_000]).toEqual([true, true]);
      expect(refused.cost).toMatchObject({
        requestedQueryCost: 98,
        actualQueryCost: null,
        throttleStatus: { currentlyAvailable: 97 },
      });
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([200, String(Math.ceil(wait / 1000))]);
      expect(ran).toEqual([]);
      expect(await library.left('points')).toBe(97);
    },
  );

  it('is restored as its limit says, and can be too much for ever', async () => {
    const library = await start();
    expect((await library.ask('{ a: books(first: 90) { name } }')).cost).toEqual(costs(90, 3, 97));
    expect((await library.ask('{ books(first: 98) { name } }')).errors![0]!.extensions['retryAfterMs']).toBe(100);
    library.app.clock.advanceMs(100);
    expect((await library.ask('{ books(first: 98) { name } }')).cost).toEqual(costs(98, 3, 95));
    const never = await library.ask('{ books(first: 101) { name } }');
    expect(never.errors![0]!.extensions['retryAfterMs']).toBeNull();
    expect(never.cost).toEqual(costs(101, null, 95));
  });

  it('is that of what an operation selects, and of what it returned', async () => {
    const library = await start();
    for (const [query, requested, actual] of operations) {
      const answer = await library.ask(query);
      const [most, real] = [Math.ceil(requested), Math.ceil(actual)];
      expect([query, answer.errors, answer.cost]).toEqual([query, undefined, costs(most, real, 100 - real)]);
      library.app.clock.advanceMs(10_000);
    }
  });

  it('knows the values of variables', async () => {
    const library = await start();
    const query = 'query ($n: Int = 6, $on: Boolean = true) { books(first: $n) @include(if: $on) { name } scalar }';
    const requested = async (variables: object) =>
      ((await library.ask(query, { variables })).cost as { requestedQueryCost: number }).requestedQueryCost;
    expect(await requested({})).toBe(6);
    expect(await requested({ n: 20 })).toBe(20);
    expect(await requested({ n: null })).toBe(10);
    expect(await requested({ n: 50, on: false })).toBe(1);
    const wrong = await library.ask(query, { variables: { n: 'many' } });
    expect(wrong.errors).toHaveLength(1);
  });

  it('counts what an error has removed as it was expected, and nothing if nothing ran', async () => {
    const library = await start();
    expect((await library.ask('{ books(first: 20) { broken author { name } } }')).cost).toEqual(costs(60, 60, 40));
    expect((await library.ask('{ found(most: 5) { broken } scalar }')).cost).toEqual(costs(5, 5, 35));
    await library.ask('query ($n: Int!) { books(first: $n) { name } }', { variables: {} });
    expect(await library.left('points')).toBe(35);
  });

  it('is decided together with the limits of its fields', async () => {
    const library = await start();
    expect((await library.ask('mutation { addBook { name } }')).cost).toEqual(costs(10, 10, 90));
    const refused = await library.ask('mutation { count addBook { name } }');
    expect(refused.errors![0]!.extensions).toMatchObject({ limits: ['orders'] });
    expect(refused.cost).toEqual(costs(20, null, 90));
    expect(ran).toEqual(['addBook']);
  });

  it('can be counted by several limits, and by functions', async () => {
    const library = await start({
      limit: ['points', 'hourly'],
      object: 3,
      mutation: 20,
      weight: ({ type, name, args, returns }) => {
        if (type === 'Query' && name === 'best') throw new Error('it fails');
        if (returns === 'Poet') return NaN;
        return name === 'books' ? 2 * Number(args['first']) : undefined;
      },
    });
    const headers = { 'x-app': 'one' };
    expect((await library.ask('{ books(first: 4) { author { name } } }', { headers })).cost).toEqual(
      costs(4 * (8 + 2), 3 * 8 + 3 * 2, 70),
    );
    expect(await library.left('points')).toBe(70);
    expect((await library.ask('{ best { name } shelf(first: 1) { total } }')).cost).toEqual(costs(10, 10, 60));
    expect((await library.ask('mutation { count }')).cost).toEqual(costs(20, 20, 40));
  });

  it('is bounded, however often a document repeats itself', async () => {
    const library = await start();
    const levels = 60;
    const fragments = list(levels, (index) => {
      const inner = index === levels - 1 ? 'name' : `...F${index + 1}`;
      return `fragment F${index} on Poet { a: books { author { ${inner} } } b: books { author { ${inner} } } }`;
    });
    const bomb = await library.ask(`{ best { author { ...F0 } } } ${fragments.join(' ')}`);
    expect(bomb.errors![0]!.extensions).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: null });
    expect(bomb.cost).toMatchObject({ requestedQueryCost: Number.MAX_SAFE_INTEGER });
    const huge = await library.ask('{ books(first: 2147483647) { author { name books { author { name } } } } }');
    expect(huge.errors![0]!.extensions).toMatchObject({ retryAfterMs: null });
    expect(ran).toEqual([]);
    expect(await library.left('points')).toBe(100);
  });

  it('is that of each operation of a batch', async () => {
    const library = await start({}, { graphql: { allowBatchedHttpRequests: true, allowBatchedQueries: true } });
    const query = '{ books(first: 60) { name } }';
    const response = await library.post([{ query: 'mutation { count }' }, { query }, { query: '{ scalar }' }]);
    const answers = (await response.json()) as { extensions: { cost: { actualQueryCost: number } } }[];
    expect(answers.map(({ extensions }) => extensions.cost.actualQueryCost)).toEqual([10, 3, 1]);
    expect(await library.left('points')).toBe(86);
  });

  it('is counted by user, whom the first guard may find', async () => {
    const library = await start({ limit: 'own' });
    const [ada, bob] = [{ headers: { 'x-user': 'ada' } }, { headers: { 'x-user': 'bob' } }];
    const query = '{ best { name } other: best { name } }';
    expect((await library.ask(query, ada)).cost).toMatchObject({
      actualQueryCost: 14,
      throttleStatus: { limit: 'own', currentlyAvailable: 6 },
    });
    expect(await library.left('own', 'user:ada')).toBe(6);
    const refused = await library.ask(query, ada);
    expect(refused.data).toEqual({ best: null, other: null });
    expect(refused.errors).toHaveLength(2);
    expect(refused.errors![0]).toMatchObject({ path: ['best'], extensions: { code: 'RATE_LIMITED', limits: ['own'] } });
    expect(refused.cost).toMatchObject({ requestedQueryCost: 14, actualQueryCost: null });
    expect((await library.ask(query, bob)).errors).toBeUndefined();
  });
});
