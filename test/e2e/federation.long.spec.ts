import 'reflect-metadata';
import { ApolloServerPluginInlineTraceDisabled } from '@apollo/server/plugin/disabled';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ApolloFederationDriver, type ApolloFederationDriverConfig } from '@nestjs/apollo';
import {
  Directive,
  Field,
  GraphQLModule,
  ID,
  Int,
  ObjectType,
  Parent,
  Query,
  ResolveReference,
  Resolver,
} from '@nestjs/graphql';
import {
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  type RateLimitModuleOptions,
  type RequestDecision,
} from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { frameworks, type Framework, HttpApp } from './http-app.js';

const RATE = 3;
const work = { reached: 0 };

const minute = { algo: 'fixed-window', rate: RATE, interval: '1m' } as const;
const define = {
  references: minute,
  late: { ...minute, rate: 100, phase: 'authenticated' },
  slots: { algo: 'concurrency', limit: 50, ttl: '30s' },
  tokens: { ...minute, rate: 100, cost: 10 },
} satisfies Record<string, LimitDefinition>;

@ObjectType()
@Directive('@key(fields: "id")')
class Book {
  @Field(() => ID)
  id!: string;

  @Field(() => Int, { nullable: true })
  remaining?: number | undefined;
}

@ObjectType()
@Directive('@key(fields: "id")')
class Model {
  @Field(() => ID)
  id!: string;
}

@Resolver(() => Book)
class BookResolver {
  @Query(() => [Book])
  books() {
    return ['a', 'b'].map((id) => ({ id }));
  }

  @ResolveReference()
  @RateLimit('references', 'late', 'slots')
  resolveReference(@Parent() { id }: Book, @RateLimitDecision() decision: RequestDecision) {
    work.reached++;
    return { id, remaining: decision.decisions.find(({ limit }) => limit === 'references')?.remaining };
  }
}

@Resolver(() => Model)
class ModelResolver {
  @Query(() => [Model])
  models() {
    return [];
  }

  @ResolveReference()
  @RateLimit('tokens')
  async resolveReference(@Parent() { id }: Model, @RateLimitDecision() decision: RequestDecision) {
    await decision.settle(Number(id));
    return { id };
  }
}

interface Answer {
  readonly data?: { readonly [field: string]: readonly ({ remaining: number } | null)[] | null } | null;
  readonly errors?: readonly { readonly path: (string | number)[]; readonly extensions: object }[];
}

let app: HttpApp | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(framework: Framework, limits: RateLimitModuleOptions = {}) {
  work.reached = 0;
  const started = await HttpApp.start(framework, {
    imports: [
      GraphQLModule.forRoot<ApolloFederationDriverConfig>({
        driver: ApolloFederationDriver,
        autoSchemaFile: { federation: 2 },
        graphiql: false,
        allowBatchedHttpRequests: true,
        plugins: [ApolloServerPluginInlineTraceDisabled()],
        fieldResolverEnhancers: ['guards', 'interceptors'],
      }),
    ],
    providers: [BookResolver, ModelResolver],
    limits: { define, ...limits },
  });
  app = started;
  const service = started.nest.get(LimiterService);
  const post = async (body: unknown): Promise<unknown> =>
    (
      await fetch(`${started.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json();
  return {
    ask: (query: string, variables = {}) => post({ query, variables }) as Promise<Answer>,
    askAll: (bodies: readonly object[]) => post(bodies) as Promise<Answer[]>,
    left: async (name: string) => (await service.for(name).peek('ip:127.0.0.1')).remaining,
  };
}

const ENTITIES = 'query ($all: [_Any!]!) { _entities(representations: $all) { ... on Book { id remaining } } }';
const books = (count: number) => Array.from({ length: count }, (_, id) => ({ __typename: 'Book', id: String(id) }));

describe.each(frameworks)('entities of a federation over %s', (framework) => {
  it('each reference is a call of its own', async () => {
    const { ask, left } = await start(framework);
    const { data, errors } = await ask(ENTITIES, { all: books(20) });
    expect(data?.['_entities']?.slice(0, RATE).map((book) => book?.remaining)).toEqual([2, 1, 0]);
    expect(data?.['_entities']?.slice(RATE)).toEqual(Array(20 - RATE).fill(null));
    expect(errors).toHaveLength(20 - RATE);
    expect(errors?.[0]).toMatchObject({
      path: ['_entities', RATE],
      extensions: { code: 'RATE_LIMITED', retryAfterMs: 60_000, limits: ['references'] },
    });
    // The limit that is checked after the guards has seen those that got there, and no slot is left taken.
    expect([work.reached, await left('late')]).toEqual([RATE, 100 - RATE]);
    await until(async () => (await left('slots')) === 50);
  });

  it('the same representation many times over, by a variable, is as many calls', async () => {
    const { ask } = await start(framework);
    const list = Array(20).fill('$one').join(', ');
    const query = `query ($one: _Any!) { _entities(representations: [${list}]) { ... on Book { id } } }`;
    expect((await ask(query, { one: books(1)[0] })).errors).toHaveLength(20 - RATE);
    expect(work.reached).toBe(RATE);
  });

  it('the same list under aliases, and in batched requests, is as many calls', async () => {
    const { ask, askAll } = await start(framework);
    const aliases = ['one', 'two'].map((alias) => `${alias}: _entities(representations: $all) { ... on Book { id } }`);
    const query = `query ($all: [_Any!]!) { ${aliases.join(' ')} }`;
    expect((await ask(query, { all: books(2) })).errors).toHaveLength(1);
    expect(work.reached).toBe(RATE);
    const batch = await askAll([1, 2].map(() => ({ query: ENTITIES, variables: { all: books(2) } })));
    expect(batch.map(({ errors }) => errors?.length)).toEqual([2, 2]);
    expect(work.reached).toBe(RATE);
  });

  it('settles each reference by itself', async () => {
    const { ask, left } = await start(framework);
    const all = [1, 2, 3].map((id) => ({ __typename: 'Model', id: String(id) }));
    const query = 'query ($all: [_Any!]!) { _entities(representations: $all) { ... on Model { id } } }';
    expect((await ask(query, { all })).errors).toBeUndefined();
    expect(await left('tokens')).toBe(100 - 6);
  });
});
