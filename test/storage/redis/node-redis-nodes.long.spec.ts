import type { EventEmitter } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { type RateLimitModuleOptions, RedisStore } from '../../../lib/index.js';
import { ConsoleApp } from '../../console/console-app.js';
import { RatesApp, until } from '../../app/overrides/overrides-app.js';
import { nodeRedis } from '../../support/redis/node-redis.js';
import {
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  startCluster,
  startSentinel,
} from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const define = {
  plain: { algo: 'fixed-window', rate: 10, interval: '1d' },
  confirmed: { algo: 'fixed-window', rate: 10, interval: '1d', replicas: 1, onStoreError: 'deny' },
} as const;

const cleanups: (() => unknown)[] = [];
beforeEach(() => {
  jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
  // Version 5 writes what its Sentinels answered.
  jest.spyOn(console, 'log').mockImplementation(() => undefined);
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  jest.restoreAllMocks();
});

async function startApp(
  redis: RateLimitModuleOptions['redis'],
  options: RateLimitModuleOptions = {},
): Promise<RatesApp> {
  const app = await RatesApp.start({ redis, define, timeout: PATIENCE, ...options });
  cleanups.push(() => app.close());
  return app;
}

/** Identities of slots of different masters. */
function ofEachMaster(count: number): string[] {
  const byThird = new Map<number, string>();
  for (let i = 0; byThird.size < count; i++) {
    byThird.set(Math.floor((3 * calculateSlot(`{user:${i}}`)) / 16_384), `user:${i}`);
  }
  return [...byThird.values()];
}

const listeners = (client: EventEmitter) =>
  Object.fromEntries(client.eventNames().map((name) => [String(name), client.listenerCount(name)]));

/** How many connections are subscribed to channels on a node. */
async function subscribed({ url }: RedisServer): Promise<number> {
  const client = new Redis(url);
  const list = String(await client.client('LIST'));
  client.disconnect();
  return list.split('\n').filter((line) => / sub=1 /.test(line)).length;
}

describe('a Cluster of node-redis', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  describe.each(Object.entries(nodeRedis))('by %s', (_, { createCluster }) => {
    let prefix: string;
    beforeEach(() => {
      prefix = freshPrefix();
    });

    const open = async (options: { minimizeConnections?: boolean } = {}) => {
      const client = createCluster({ rootNodes: cluster.nodes.map((socket) => ({ socket })), ...options });
      client.on('error', () => undefined);
      await client.connect();
      cleanups.push(() => client.isOpen && client.destroy());
      return client;
    };

    it('counts on each node, and all or nothing across their slots', async () => {
      const { service } = await startApp(await open(), { prefix });
      const [one, two, three] = ofEachMaster(3) as [string, string, string];
      const plain = service.for('plain');
      const all = await Promise.all([one, two, three].map((key) => plain.consume(key, 4)));
      expect(all).toEqual(
        [1, 2, 3].map(() => expect.objectContaining({ allowed: true, remaining: 6, source: 'redis' })),
      );
      await plain.consume(three, 6);
      const refused = await service.check([one, two, three].map((key) => ({ limit: 'plain', key })));
      expect(refused.allowed).toBe(false);
      for (const key of [one, two]) expect((await plain.peek(key)).remaining).toBe(6);
      await plain.reset(three);
      expect((await plain.peek(three)).remaining).toBe(10);
    });

    it('gives nodes the script that have lost it', async () => {
      const { service } = await startApp(await open(), { prefix });
      for (const { url } of await cluster.masters()) {
        const admin = new Redis(url);
        await admin.script('FLUSH');
        admin.disconnect();
      }
      for (const key of ofEachMaster(3)) {
        expect(await service.for('plain').consume(key)).toMatchObject({ allowed: true, source: 'redis' });
      }
    });

    it('connects to nodes when they are needed, if the app wants that', async () => {
      const { service } = await startApp(await open({ minimizeConnections: true }), { prefix });
      for (const key of ofEachMaster(3)) {
        expect(await service.for('plain').consume(key)).toMatchObject({ allowed: true, source: 'redis' });
      }
    });

    it('opens while the first connections to its nodes are still being made', async () => {
      const client = await open({ minimizeConnections: true });
      const connecting = client.masters.map((node) => client.nodeClient(node));
      await expect(new RedisStore(client, { prefix }).open()).resolves.toBeUndefined();
      await Promise.all(connecting);
    });

    it('makes replicas confirm', async () => {
      const { service } = await startApp(await open(), { prefix });
      for (const key of ofEachMaster(3)) {
        expect(await service.for('confirmed').consume(key)).toMatchObject({ allowed: true, source: 'redis' });
      }
    });

    it('delivers changed rates, and shows the console its health', async () => {
      const client = await open();
      const [one, two] = await Promise.all([
        startApp(client, { prefix }),
        startApp({ nodes: cluster.nodes }, { prefix }),
      ]);
      await two.service.setRate('plain', { rate: 30 });
      await until(() => one.quota('plain'), 30);
      await one.service.setRate('plain', { rate: 40 });
      await until(() => two.quota('plain'), 40);
      const page = await ConsoleApp.start({ limits: { redis: client, prefix, timeout: PATIENCE } });
      cleanups.push(() => page.close());
      await page.service.for('things').consume('anna');
      await page.console.recorder.flush();
      const { redis, totals } = await page.overview();
      expect(totals['things']).toMatchObject({ allowed: 1 });
      expect(redis).toMatchObject({ up: true, mode: 'cluster', version: expect.any(String) });
    });

    it('stays open when apps close, without their listeners', async () => {
      const client = await open();
      await (await RatesApp.start({ redis: client, define, prefix })).close();
      const before = listeners(client);
      for (let i = 0; i < 2; i++) {
        const app = await RatesApp.start({ redis: client, define, prefix });
        await app.service.for('plain').consume('user:1');
        await app.close();
      }
      expect(listeners(client)).toEqual(before);
      await expect(client.get('any')).resolves.toBeNull();
    });

    it('that the app has closed is not asked', async () => {
      const client = await open();
      const { service } = await startApp(client, { prefix });
      client.destroy();
      expect(await service.for('plain').consume('user:1')).toMatchObject({ source: 'fallback' });
      await expect(RatesApp.start({ redis: client })).rejects.toThrow(
        'expected an open client of node-redis, received one that is not open',
      );
    });
  });
});

describe('a Cluster of node-redis whose master freezes', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  const cases = Object.entries(nodeRedis).flatMap(([version, { createCluster }]) =>
    [false, true].map((minimizeConnections) => [version, minimizeConnections, createCluster] as const),
  );
  it.each(cases)('is asked again, by %s (minimizeConnections: %s)', async (_, minimizeConnections, createCluster) => {
    const rootNodes = cluster.nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` }));
    const client = createCluster({ rootNodes, minimizeConnections }).on('error', () => undefined);
    await client.connect();
    cleanups.push(() => client.destroy());
    const { service } = await startApp(client, { prefix: freshPrefix(), timeout: '250ms' });
    // The first one that the client knows: others fail, too, while the Cluster is down, and are not to be followed there.
    const first = client.slots[0]!.master;
    const keys = ofEachMaster(3);
    const frozenKey = keys.find((key) => client.slots[calculateSlot(`{${key}}`)]!.master === first)!;
    const consume = async (key: string) => (await service.for('plain').consume(key, 0)).source;
    if (!minimizeConnections) expect(await Promise.all(keys.map(consume))).toEqual(['redis', 'redis', 'redis']);
    expect(await consume(frozenKey)).toBe('redis');
    const frozen = cluster.servers.find(({ port }) => port === first.port)!;
    frozen.pause();
    try {
      const asked = minimizeConnections ? [frozenKey] : keys;
      const sources = async () => [...new Set(await Promise.all(asked.map(consume)))].join(' and ');
      await until(sources, 'fallback');
      await until(sources, 'redis');
    } finally {
      frozen.resume();
    }
    await until(async () => (await cluster.masters()).length, 3);
  });
});

describe('a node that freezes with subscriptions of an app', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  const connections: Record<string, () => Promise<RateLimitModuleOptions['redis']>> = {
    'a connection of its own': () => Promise.resolve({ nodes: cluster.nodes }),
    ...Object.fromEntries(
      Object.entries(nodeRedis).map(([version, { createCluster }]) => [
        version,
        async () => {
          const rootNodes = cluster.nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` }));
          const client = createCluster({ rootNodes }).on('error', () => undefined);
          await client.connect();
          cleanups.push(() => client.destroy());
          return client;
        },
      ]),
    ),
  };

  it.each(Object.entries(connections))('is left for another one, by %s', async (_, redisOf) => {
    const { service } = await startApp(await redisOf(), { prefix: freshPrefix(), timeout: '250ms' });
    const keys = ofEachMaster(3);
    const consume = () => Promise.all(keys.map((key) => service.for('plain').consume(key, 0)));
    await consume();
    const countAll = async (servers: readonly RedisServer[]) =>
      (await Promise.all(servers.map(subscribed))).reduce((sum, count) => sum + count, 0);
    await until(() => countAll(cluster.servers), 1);
    const counts = await Promise.all(cluster.servers.map(subscribed));
    const frozen = cluster.servers[counts.indexOf(Math.max(...counts))]!;
    const others = cluster.servers.filter((server) => server !== frozen);
    frozen.pause();
    try {
      await until(async () => (await consume()) && countAll(others), 1);
    } finally {
      frozen.resume();
    }
    await until(async () => (await cluster.masters()).length, 3);
  });
});

describe('Sentinels of node-redis', () => {
  let sentinel: RedisSentinel;
  beforeEach(async () => {
    sentinel = await startSentinel();
  });
  afterEach(() => sentinel?.stop());

  it.each(Object.entries(nodeRedis))('lead %s to the master, and to the next one', async (_, { createSentinel }) => {
    const { sentinels, name, master, replica } = sentinel;
    const client = createSentinel({ name, sentinelRootNodes: sentinels });
    client.on('error', () => undefined);
    await client.connect();
    cleanups.push(() => client.destroy());
    const prefix = freshPrefix();
    const app = await startApp(client, { prefix, timeout: '1s' });
    const consume = (limit: string) => app.service.for(limit).consume('user:1');
    expect(await consume('plain')).toMatchObject({ allowed: true, source: 'redis' });
    expect(await consume('confirmed')).toMatchObject({ allowed: true, source: 'redis' });
    await app.service.setRate('plain', { rate: 30 });
    expect(await app.quota('plain')).toBe(30);
    await master.kill();
    expect((await consume('plain')).source).toBe('fallback');
    await until(async () => (await consume('plain')).source, 'redis');
    // What other instances publish arrives, too.
    const other = await startApp(replica.url, { prefix });
    await until(
      () =>
        other.service.setRate('plain', { rate: 50 }).then(
          () => true,
          () => false,
        ),
      true,
    );
    await until(() => app.quota('plain'), 50);
    const before = listeners(client);
    await app.close();
    expect(client.isOpen).toBe(true);
    expect(Object.keys(listeners(client)).length).toBeLessThanOrEqual(Object.keys(before).length);
  });
});
