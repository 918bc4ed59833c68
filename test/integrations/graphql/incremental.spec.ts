import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { GraphQLSchemaHost, Mutation, Query, Resolver, TypeMetadataStorage } from '@nestjs/graphql';
import { execute, getOperationAST, parse } from 'graphql';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { RateLimitApolloPlugin } from '../../../lib/integrations/graphql/index.js';
import { Gate } from '../../support/time/gate.js';
import { until } from '../../support/time/until.js';
import { GraphqlApp } from './graphql-app.js';

// Specs of one worker share the types of their schemas.
afterAll(() => TypeMetadataStorage.clear());

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  orders: { ...minute, rate: 3 },
  points: { ...minute, rate: 1000 },
} satisfies Record<string, LimitDefinition>;

let ran: string[] = [];
let first: Gate;

@Resolver()
class ShopResolver {
  @Query(() => Number)
  one() {
    return 1;
  }

  @Mutation(() => Number)
  async before() {
    await first.passed;
    return 1;
  }

  @Mutation(() => Number)
  @RateLimit('orders')
  order() {
    ran.push('order');
    return 1;
  }
}

let app: GraphqlApp;
beforeEach(async () => {
  ran = [];
  first = new Gate();
  app = await GraphqlApp.start('Apollo on Express', {
    providers: [ShopResolver],
    limits: { define },
    operations: { cost: { limit: 'points' } },
  });
});
afterEach(() => app.close());

/**
 * An operation as Apollo Server runs it with graphql 17, whose `@defer` lets fields begin after the first part of the response was
 * sent. With graphql 16, a mutation whose fields run one after the other stands for it.
 */
async function inParts(query: string) {
  const nest = app.app.nest;
  const { schema } = nest.get(GraphQLSchemaHost, { strict: false });
  const document = parse(query);
  const req = { headers: {}, ip: '127.0.0.1' };
  const request = {
    schema,
    document,
    operation: getOperationAST(document),
    contextValue: { req },
    request: {},
    response: { body: { kind: 'incremental', initialResult: {} as { extensions?: object } } },
  };
  const listener = await nest.get(RateLimitApolloPlugin, { strict: false }).requestDidStart();
  await listener.didResolveOperation(request);
  const done = execute({ schema, document, contextValue: request.contextValue });
  await listener.willSendResponse(request);
  return { request, done, part: (payload: object) => listener.willSendSubsequentPayload(request, payload) };
}

describe('a response that Apollo Server sends in parts', () => {
  it('is charged for fields that begin after its first part', async () => {
    const { done, part, request } = await inParts('mutation { before order }');
    expect(request.response.body.initialResult.extensions).toMatchObject({
      cost: { requestedQueryCost: 20, actualQueryCost: 20 },
    });
    expect(await app.left('orders')).toBe(2);
    first.open();
    expect(await done).toMatchObject({ data: { before: 1, order: 1 } });
    await part({ hasNext: false });
    expect([ran, await app.left('orders'), await app.left('points')]).toEqual([['order'], 2, 980]);
  });

  it('gives back with its last part what did not run', async () => {
    const { part } = await inParts('mutation { before order }');
    await part({ hasNext: true });
    expect(await app.left('orders')).toBe(2);
    await part({ hasNext: false });
    await until(async () => (await app.left('orders')) === 3);
    expect([ran, await app.left('points')]).toEqual([[], 980]);
  });
});
