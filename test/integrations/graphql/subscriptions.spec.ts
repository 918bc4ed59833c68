import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { Int, Query, Resolver, Subscription, TypeMetadataStorage } from '@nestjs/graphql';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { type LimitDefinition, RateLimit } from '../../../lib/index.js';
import { until } from '../../support/time/until.js';
import { GraphqlApp } from './graphql-app.js';

// Specs of one worker share the types of their schemas.
afterAll(() => TypeMetadataStorage.clear());

const minute = { algo: 'fixed-window', interval: '1m' } as const;
const define = {
  points: { ...minute, rate: 6 },
  subs: { ...minute, rate: 2 },
  open: { algo: 'concurrency', limit: 2, ttl: '30s' },
} satisfies Record<string, LimitDefinition>;

/** Opens the gate that feeds wait at: a generator that waits can't end when its reader leaves. */
let leave = () => {};
let gate = Promise.resolve();

@Resolver()
class NewsResolver {
  @Query(() => Int)
  one() {
    return 1;
  }

  @Subscription(() => Int)
  @RateLimit('subs')
  async *news() {
    yield { news: 1 };
  }

  @Subscription(() => Int)
  @RateLimit('open')
  async *feed() {
    yield { feed: 1 };
    await gate;
  }

  @Subscription(() => Int)
  @RateLimit('subs', 'open')
  async *both() {
    yield { both: 1 };
  }
}

describe.each(['Apollo on Express', 'Mercurius'] as const)('a subscription on %s', (server) => {
  let app: GraphqlApp;
  let client: ReturnType<typeof createClient>;
  const start = async () => {
    app = await GraphqlApp.start(server, {
      providers: [NewsResolver],
      limits: { define },
      operations: { cost: { limit: 'points' } },
      graphql: server === 'Mercurius' ? { subscription: true } : { subscriptions: { 'graphql-ws': true } },
    });
    client = createClient({ url: app.url.replace('http', 'ws'), webSocketImpl: WebSocket, retryAttempts: 0 });
  };
  afterEach(async () => {
    await client.dispose();
    await app.close();
  });
  const left = (...names: (keyof typeof define)[]) => Promise.all(names.map((name) => app.left(name)));
  const first = async (query: string): Promise<unknown> => {
    for await (const answer of client.iterate({ query })) return answer;
    return undefined;
  };
  /** The limits that refused a subscription: some servers answer with an error, and others fail its iterator. */
  const refusedBy = async (query: string): Promise<unknown> => {
    const answer = await first(query).catch((error: unknown) => ({ errors: error }));
    const [error] = (answer as { errors: { extensions: { limits: string[] } }[] }).errors;
    return error!.extensions.limits;
  };

  it('is charged nothing by its points if another limit refuses it, and the other way round', async () => {
    await start();
    expect(await first('subscription { news }')).toMatchObject({ data: { news: 1 } });
    expect(await first('subscription { news }')).toMatchObject({ data: { news: 1 } });
    for (let i = 0; i < 5; i++) expect(await refusedBy('subscription { news }')).toEqual(['subs']);
    expect(await left('points', 'subs')).toEqual([4, 0]);
    for (let i = 0; i < 4; i++) expect((await app.ask('{ one }')).data).toEqual({ one: 1 });
    expect(await refusedBy('subscription { feed }')).toEqual(['points']);
    expect(await left('points', 'open')).toEqual([0, 2]);
  });

  it('takes all of its own limits with its points, or none', async () => {
    await start();
    await first('subscription { news }');
    await first('subscription { news }');
    expect(await refusedBy('subscription { both }')).toEqual(['subs']);
    expect(await left('points', 'subs', 'open')).toEqual([4, 0, 2]);
  });

  it('holds its slot until it ends', async () => {
    gate = new Promise((resolve) => (leave = resolve));
    await start();
    const streams = [0, 1].map(() => client.iterate({ query: 'subscription { feed }' }));
    for (const stream of streams) expect((await stream.next()).value).toMatchObject({ data: { feed: 1 } });
    expect(await left('points', 'open')).toEqual([4, 0]);
    expect(await refusedBy('subscription { feed }')).toEqual(['open']);
    expect(await left('points')).toEqual([4]);
    for (const stream of streams) await stream.return!();
    leave();
    await until(async () => (await app.left('open')) === 2);
  });
});
