import 'reflect-metadata';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type INestApplication, Module, type Type } from '@nestjs/common';
import { NestFactory as Factory } from '@nestjs/core';
import {
  Args,
  Directive,
  Field,
  GraphQLModule,
  InputType,
  Int,
  Mutation,
  ObjectType,
  Query,
  Resolver,
  TypeMetadataStorage,
} from '@nestjs/graphql';
import { RateLimitApolloPlugin, RateLimitGraphqlModule } from '../../lib/integrations/graphql/index.js';
import { type LimitDefinition, RateLimit, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';

// Specs of one worker share the types of their schemas.
afterAll(() => TypeMetadataStorage.clear());

@ObjectType()
class Novel {
  @Field()
  title!: string;
}

@Resolver()
class LibraryResolver {
  @Query(() => [Novel])
  books(@Args('first', { type: () => Int }) first: number) {
    return [{ title: 'Emma' }, { title: 'Persuasion' }].slice(0, first);
  }

  @Mutation(() => Novel)
  @RateLimit('orders')
  order(@Args('title') title: string) {
    return { title };
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      define: {
        points: { algo: 'token-bucket', rate: 50, interval: '1s', burst: 1000 },
        orders: { algo: 'sliding-window', rate: 3, interval: '1m' },
      },
    }),
    GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true }),
    RateLimitGraphqlModule.forRoot({ cost: { limit: 'points' } }),
  ],
  providers: [LibraryResolver],
})
class AppModule {}

@InputType()
class Page {
  @Field(() => Int)
  size!: number;
}

@ObjectType()
@Directive('@cost(weight: "2")')
class Writer {
  @Field()
  name!: string;
}

const authors: Writer[] = [{ name: 'Austen' }];
const summarize = (all: readonly Writer[]) => String(all.length);

@Resolver(() => Writer)
class AuthorResolver {
  @Query(() => [Writer])
  @Directive('@listSize(slicingArguments: ["most", "page.size"], assumedSize: 20)')
  authors(
    @Args('most', { type: () => Int, nullable: true }) most?: number,
    @Args('page', { nullable: true }) page?: Page,
  ) {
    return authors.slice(0, most ?? page?.size);
  }

  @Query(() => String)
  @Directive('@cost(weight: "25")')
  summary() {
    return summarize(authors);
  }
}

@Resolver()
class SearchResolver {
  @Query(() => [Novel])
  search(@Args('fuzzy') _fuzzy: boolean) {
    return [];
  }
}

@Module({ providers: [LibraryResolver] })
class LibraryModule {}

let running: INestApplication;
afterEach(() => running.close());

/** Nest's, on a port that is free. */
const NestFactory = {
  create: async (module: Type | object) => {
    running = await Factory.create(module as Type, { logger: false, abortOnError: false });
    return { listen: async (_port: number) => running.listen(0, '127.0.0.1') };
  },
};

const points = { algo: 'token-bucket', rate: 50, interval: '1s', burst: 1000 } satisfies LimitDefinition;

async function startWith(imports: readonly object[], ...providers: Type[]): Promise<void> {
  const limits = RateLimitModule.forRoot({
    define: {
      points,
      pointsPerDay: { algo: 'calendar-window', rate: 100_000, period: 'day' },
      orders: { algo: 'fixed-window', rate: 3, interval: '1m' },
    },
  });
  await (await NestFactory.create({ module: class {}, imports: [limits, ...imports], providers })).listen(3000);
}

async function ask(query: string): Promise<{ data?: object; errors?: object[]; extensions?: { cost: object } }> {
  const headers = { 'content-type': 'application/json', connection: 'close' };
  const url = `${await running.getUrl()}/graphql`;
  return (await (await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) })).json()) as object;
}

async function costOf(query: string): Promise<unknown> {
  return (await ask(query)).extensions?.cost;
}

const schema = () => GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });

describe('the guide of GraphQL', () => {
  it('begins with an app that runs', async () => {
    const app = await NestFactory.create(AppModule);
    await app.listen(3000);

    expect(await ask('{ books(first: 10) { title } }')).toEqual({
      data: { books: [{ title: 'Emma' }, { title: 'Persuasion' }] },
      extensions: {
        cost: {
          requestedQueryCost: 10,
          actualQueryCost: 2,
          throttleStatus: { limit: 'points', maximumAvailable: 1000, currentlyAvailable: 998, restoreRate: 50 },
        },
      },
    });
    const both = 'mutation { one: order(title: "Emma") { title } two: order(title: "Persuasion") { title } }';
    expect(await ask(both)).toMatchObject({ data: { one: { title: 'Emma' }, two: { title: 'Persuasion' } } });
    const { errors, data } = await ask(both);
    expect(data).toBeUndefined();
    expect(errors).toMatchObject([
      { message: 'Too many requests', extensions: { code: 'RATE_LIMITED', limits: ['orders'] } },
    ]);
  });

  it('weighs by directives', async () => {
    await startWith([schema(), RateLimitGraphqlModule.forRoot({ cost: { limit: 'points' } })], AuthorResolver);
    expect(await costOf('{ authors { name } }')).toMatchObject({ requestedQueryCost: 40, actualQueryCost: 2 });
    expect(await costOf('{ authors(page: { size: 5 }, most: 3) { name } }')).toMatchObject({
      requestedQueryCost: 10,
    });
    expect(await costOf('{ summary }')).toMatchObject({ requestedQueryCost: 25, actualQueryCost: 25 });
  });

  it('weighs by a function', async () => {
    const limits =
      // As the guide has it.
      RateLimitGraphqlModule.forRoot({
        cost: {
          limit: ['points', 'pointsPerDay'],
          weight: ({ type, name, args }) =>
            type === 'Query' && name === 'search' && args['fuzzy'] === true ? 20 : undefined,
        },
      });
    await startWith([schema(), limits], SearchResolver);
    expect(await costOf('{ search(fuzzy: true) { title } }')).toMatchObject({
      requestedQueryCost: 200,
      actualQueryCost: 20,
    });
    expect(await costOf('{ search(fuzzy: false) { title } }')).toMatchObject({
      requestedQueryCost: 10,
      actualQueryCost: 1,
    });
  });

  it('gives the plugin to a server that does not find it', async () => {
    const limits = RateLimitGraphqlModule.forRoot({ cost: { limit: 'points' } });
    const graphql =
      // As the guide has it.
      GraphQLModule.forRootAsync<ApolloDriverConfig>({
        driver: ApolloDriver,
        imports: [limits],
        inject: [RateLimitApolloPlugin],
        useFactory: (plugin: RateLimitApolloPlugin) => ({
          autoSchemaFile: true,
          include: [LibraryModule],
          plugins: [plugin],
        }),
      });
    await startWith([limits, LibraryModule, graphql]);
    expect((await ask('{ books(first: 10) { title } }')).extensions?.cost).toMatchObject({ actualQueryCost: 2 });
  });

  it('has no other code', () =>
    expect(untriedCode('docs/guides/graphql.md', 'test/docs/graphql.long.spec.ts')).toEqual([]));

  it('has no other code in its reference', () =>
    expect(untriedCode('docs/reference/graphql.md', 'test/docs/graphql.long.spec.ts', 'started')).toEqual([]));
});
