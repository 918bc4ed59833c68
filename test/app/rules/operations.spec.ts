import 'reflect-metadata';
import { afterEach, expect, it } from '@jest/globals';
import { Int, Mutation, Query, Resolver } from '@nestjs/graphql';
import type { ModuleLimit } from '../../../lib/index.js';
import { GraphqlApp, servers } from '../../integrations/graphql/graphql-app.js';

const minute = { algo: 'fixed-window', interval: '1m', key: 'global' } as const;
const ran: string[] = [];

@Resolver()
class Library {
  @Query(() => Int)
  books() {
    return 1;
  }

  @Mutation(() => Int, { nullable: true })
  one() {
    return ran.push('one');
  }

  @Mutation(() => Int, { nullable: true })
  two() {
    return ran.push('two');
  }
}

const kinds: [string, ModuleLimit][] = [
  ['a function', async () => ({ ...minute, name: 'chosen', rate: 3 })],
  ['a rate', { ...minute, name: 'rated', rate: async () => 3 }],
];

let app: GraphqlApp | undefined;
afterEach(async () => {
  ran.length = 0;
  await app?.close();
  app = undefined;
});

it.each(servers.flatMap((server) => kinds.map(([kind, limit]) => [kind, server, limit] as const)))(
  'limits by %s decide operations of %s as a whole',
  async (_, server, limit) => {
    app = await GraphqlApp.start(server, { providers: [Library], limits: { limits: [limit] } });
    expect((await app.ask('mutation { one two }')).errors).toBeUndefined();
    // One unit is left for two fields: neither of them runs.
    const refused = await app.ask('mutation { one two }');
    expect(refused.errors).not.toHaveLength(0);
    expect(ran).toEqual(['one', 'two']);
    expect((await app.ask('{ books }')).errors).toBeUndefined();
  },
);
