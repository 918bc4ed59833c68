import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { Directive, Field, InterfaceType, ObjectType, Query, Resolver, TypeMetadataStorage } from '@nestjs/graphql';
import { variants } from '../../support/tier.js';
import { GraphqlApp, servers } from './graphql-app.js';

// Specs of one worker share the types of their schemas.
afterAll(() => TypeMetadataStorage.clear());

@InterfaceType({ resolveType: ({ rank }: Link) => ['Plain', 'Heavy', 'Other'][rank % 3] })
abstract class Link {
  rank!: number;

  @Field()
  name!: string;

  @Field(() => Link, { nullable: true })
  next?: Link | null;

  @Field(() => [Link])
  all!: Link[];
}

@ObjectType({ implements: Link })
class Plain extends Link {}

@ObjectType({ implements: Link })
class Heavy extends Link {
  @Field(() => Link, { nullable: true })
  @Directive('@cost(weight: "2")')
  declare next?: Link | null;

  @Field(() => [Link])
  @Directive('@cost(weight: "2")')
  declare all: Link[];
}

@ObjectType({ implements: Link })
class Other extends Link {}

const DEPTH = 40;

/** A chain of objects. Each has the next one, also as a list. */
function link(depth: number, rank = 0): Link {
  return {
    rank,
    name: `link ${depth}`,
    get next() {
      return depth === 0 ? null : link(depth - 1, rank);
    },
    get all() {
      return depth === 0 ? [] : [link(depth - 1, rank)];
    },
  };
}

@Resolver(() => Link)
class LinkResolver {
  @Query(() => Link)
  first(): Link {
    return link(DEPTH);
  }
}

/** Selects `select` of each of some types at each level, under the same names of the response. */
function nested(levels: number, types: readonly string[], select: (inner: string) => string): string {
  const fragments = Array.from({ length: levels }, (_, level) => {
    const inner = level === levels - 1 ? '{ name }' : `{ ...F${level + 1} }`;
    return `fragment F${level} on Link { ${types.map((type) => `... on ${type} { ${select(inner)} }`).join(' ')} }`;
  });
  return `{ first { ...F0 } } ${fragments.join(' ')}`;
}

let app: GraphqlApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

describe.each(variants(servers))('settling an operation on %s', (server) => {
  it.each<[string, readonly string[], (inner: string) => string]>([
    ['two types', ['Plain', 'Heavy'], (inner) => `next ${inner}`],
    ['three types', ['Plain', 'Heavy', 'Other'], (inner) => `next ${inner}`],
    ['lists', ['Plain', 'Heavy'], (inner) => `all ${inner}`],
    ['aliases', ['Plain', 'Heavy'], (inner) => `same: next ${inner}`],
    ['types that repeat', ['Plain', 'Link', 'Heavy', 'Link'], (inner) => `next ${inner}`],
  ])('takes a bounded number of steps for %s, which double at each level', async (_, types, select) => {
    app = await GraphqlApp.start(server, {
      providers: [LinkResolver],
      operations: { cost: { limit: 'points', listSize: 1 } },
      limits: { define: { points: { algo: 'fixed-window', rate: 10_000, interval: '1h' } } },
      graphql: { buildSchemaOptions: { orphanedTypes: [Plain, Heavy, Other] } },
    });
    const levels = 30;
    // Counting each type at each level would read 2^30 objects or more, for minutes.
    const { cost, errors } = await app.ask(nested(levels, types, select));
    expect(errors).toBeUndefined();
    // The response doesn't tell the types, so the most expensive one counts.
    expect(cost).toMatchObject({ requestedQueryCost: 1 + 2 * levels, actualQueryCost: 1 + 2 * levels });
  });
});

it('settling an operation charges the requested points if it takes too many steps', async () => {
  const types = Array.from({ length: 8 }, (_, index) => `T${index}`);
  const tree = (depth: number): object => ({ all: () => (depth === 0 ? [] : [tree(depth - 1), tree(depth - 1)]) });
  app = await GraphqlApp.start('Apollo on Express', {
    providers: [],
    operations: { cost: { limit: 'points', listSize: 3 } },
    limits: { define: { points: { algo: 'fixed-window', rate: 200_000, interval: '1h' } } },
    graphql: {
      autoSchemaFile: undefined,
      typeDefs: `
        interface Link { name: String all: [Link] }
        ${types.map((type) => `type ${type} implements Link { name: String all: [Link] }`).join(' ')}
        type Query { first: Link }`,
      resolvers: { Query: { first: () => tree(10) }, Link: { __resolveType: () => 'T1' } },
    },
  });
  const levels = 10;
  const { cost, errors } = await app.ask(nested(levels, types, (inner) => `all ${inner}`));
  expect(errors).toBeUndefined();
  // Each list was expected to hold three objects, and holds two. To tell the types of 2,000 objects would take too many steps.
  const requested = 1 + (3 ** (levels + 1) - 3) / 2;
  expect(cost).toMatchObject({ requestedQueryCost: requested, actualQueryCost: requested });
});
