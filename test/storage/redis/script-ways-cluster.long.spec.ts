import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import { RedisStore } from '../../../lib/index.js';
import { nodeRedis } from '../../support/redis/node-redis.js';
import {
  type RedisCluster,
  type RedisSentinel,
  startCluster,
  startSentinel,
} from '../../support/redis/redis-servers.js';
import { ask, compile, freshPrefix } from '../../support/limits/stores.js';
import { until } from '../../support/time/until.js';
import { PATIENCE_MS } from '../../support/redis/patience.mjs';
import { libraryClient } from '../../support/redis/library-client.js';

const QUOTA = 1000;
/** Nothing comes back while a test runs. */
const limit = compile({ algo: 'fixed-window', rate: QUOTA, interval: '1d' }, 'counted');
const another = compile({ algo: 'fixed-window', rate: QUOTA, interval: '1d' }, 'another');
const identities = Array.from({ length: 40 }, (_, index) => `user:${index}`);
const USER = { username: 'app', password: 'secret' };

type Client = ConstructorParameters<typeof RedisStore>[0];
type Made = Promise<{ client: Client; end: () => unknown }>;

let admins: Redis[];

/** Takes rights from the user of all servers. */
async function allow(...rights: readonly string[]): Promise<void> {
  for (const admin of admins) {
    await admin.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>secret', '~*', '&*', '+@all', ...rights);
    await admin.script('FLUSH');
  }
}

beforeEach(() => {
  for (const level of ['log', 'warn', 'error'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation(() => undefined);
  }
});
afterEach(() => {
  jest.restoreAllMocks();
});

/** Two checks of each identity, in one turn and one after the other, while the scripts are forgotten. */
async function askAll(store: RedisStore): Promise<void> {
  const decisions = await Promise.all(identities.map((identity) => ask(store, limit, { identity })));
  await Promise.all(admins.map((admin) => admin.script('FLUSH')));
  for (const identity of identities) decisions.push(await ask(store, limit, { identity }));
  expect(decisions.every(({ source }) => source === 'redis')).toBe(true);
}

async function expectCharges(store: RedisStore, each: number): Promise<void> {
  const peeks = await Promise.all(identities.map((identity) => ask(store, limit, { identity, peek: true })));
  expect(peeks.map(({ remaining }) => QUOTA - remaining)).toEqual(identities.map(() => each));
}

const LACKING = [
  ['script|load', ['-script|load']],
  ['evalsha', ['-evalsha']],
  ['both', ['-evalsha', '-script']],
] as const;

describe('a Cluster whose user lacks', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
    admins = cluster.servers.map(({ url }) => new Redis(url));
  });
  afterAll(async () => {
    for (const admin of admins) admin.disconnect();
    await cluster.stop();
  });

  const clients: Record<string, () => Made> = {
    'the client that is made here': async () => {
      const client = (await libraryClient({ nodes: cluster.nodes, options: { redisOptions: USER } })) as Cluster;
      return { client, end: () => client.disconnect() };
    },
    'a given ioredis': () => {
      const client = new Cluster(cluster.nodes, { redisOptions: USER });
      return Promise.resolve({ client, end: () => client.disconnect() });
    },
    'one of a prefix': () => {
      const client = new Cluster(cluster.nodes, { keyPrefix: 'app:', redisOptions: USER });
      return Promise.resolve({ client, end: () => client.disconnect() });
    },
    'node-redis': async () => {
      const rootNodes = cluster.nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` }));
      const client = nodeRedis['node-redis 6'].createCluster({ rootNodes, defaults: USER });
      client.on('error', () => undefined);
      await client.connect();
      return { client, end: () => client.destroy() };
    },
  };

  describe.each(LACKING)('%s', (_, rights) => {
    it.each(Object.keys(clients))('charges %s once for each check', async (kind) => {
      await allow(...rights);
      const { client, end } = await clients[kind]!();
      try {
        const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
        await store.open();
        await askAll(store);
        await expectCharges(store, 2);
      } finally {
        end();
      }
    });

    it('charges once for each check of a slot that moves', async () => {
      await allow(...rights);
      const { client, end } = await clients['the client that is made here']!();
      const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
      await store.open();
      const identity = 'user:moving';
      const slot = calculateSlot(identity);
      const both = () =>
        store.check([{ entries: [limit, another].map((each) => ({ limit: each, identity, cost: 1 })) }]);
      await both();
      const ranges = await admins[0]!.cluster('SLOTS');
      const [, , [, port] = []] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [];
      const source = admins.find(({ options }) => options.port === port)!;
      const masters = (await cluster.masters()).map((server) => server.port);
      const target = admins.find(({ options }) => options.port !== port && masters.includes(options.port!))!;
      const [from, to] = [await source.cluster('MYID'), await target.cluster('MYID')];
      await target.cluster('SETSLOT', slot, 'IMPORTING', from);
      await source.cluster('SETSLOT', slot, 'MIGRATING', to);
      await Promise.all(admins.map((admin) => admin.script('FLUSH')));
      // Both keys are on the old node still, then on the new one, which is asked with ASKING.
      await both();
      const keys = await source.cluster('GETKEYSINSLOT', slot, 100);
      await source.call('MIGRATE', '127.0.0.1', target.options.port!, '', '0', '5000', 'KEYS', ...keys);
      await both();
      for (const node of [target, source]) await node.cluster('SETSLOT', slot, 'NODE', to);
      await Promise.all(admins.map((admin) => admin.script('FLUSH')));
      await both();
      await until(async () => (await ask(store, limit, { identity, peek: true })).source === 'redis');
      expect((await ask(store, limit, { identity, peek: true })).remaining).toBe(QUOTA - 4);
      end();
    });
  });
});

describe('a master of Sentinels whose user lacks', () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startSentinel();
    admins = [new Redis(sentinel.master.url)];
  });
  afterAll(async () => {
    for (const admin of admins) admin.disconnect();
    await sentinel.stop();
  });

  const clients: Record<string, () => Made> = {
    'the client that is made here': async () => {
      const client = (await libraryClient({ sentinels: sentinel.sentinels, name: sentinel.name, ...USER })) as Redis;
      return { client, end: () => client.disconnect() };
    },
    'node-redis': async () => {
      const client = nodeRedis['node-redis 6'].createSentinel({
        name: sentinel.name,
        sentinelRootNodes: sentinel.sentinels,
        nodeClientOptions: USER,
      });
      client.on('error', () => undefined);
      await client.connect();
      return { client, end: () => client.destroy() };
    },
  };

  describe.each(LACKING)('%s', (_, rights) => {
    it.each(Object.keys(clients))('charges %s once for each check', async (kind) => {
      await allow(...rights);
      const { client, end } = await clients[kind]!();
      try {
        const store = new RedisStore(client, { prefix: freshPrefix(), timeoutMs: PATIENCE_MS });
        await until(() =>
          store.open().then(
            () => true,
            () => false,
          ),
        );
        await askAll(store);
        await expectCharges(store, 2);
      } finally {
        await end();
      }
    });
  });
});
