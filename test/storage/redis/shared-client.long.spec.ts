import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import { LimiterService, RateLimitModule, type RateLimitModuleOptions, type RedisClient } from '../../../lib/index.js';
import { whileNoTimeIsOver } from '../../support/time/no-time-is-over.js';
import { freePort } from '../../support/processes/ports.mjs';
import { type RedisCluster, type RedisServer, startCluster, startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix, SENDS_ONCE } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const silent = { log: () => undefined, warn: () => undefined, error: () => undefined };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function open(redis: NonNullable<RateLimitModuleOptions['redis']>): Promise<TestingModule> {
  const define = {
    prefetched: { algo: 'gcra', rate: 100, interval: '1h', prefetch: { units: 10, ttl: '1s' } },
  } as const;
  const module = RateLimitModule.forRoot({ redis, prefix: freshPrefix(), timeout: PATIENCE, define });
  const app = await Test.createTestingModule({ imports: [module] })
    .setLogger(silent)
    .compile();
  await app.init();
  return app;
}

/** How many listeners each event has. */
const listeners = (client: NodeJS.EventEmitter) =>
  Object.fromEntries(client.eventNames().map((name) => [String(name), client.listenerCount(name)]));

describe('a connection that apps share', () => {
  let server: RedisServer;
  let cluster: RedisCluster;
  beforeAll(async () => {
    [server, cluster] = await Promise.all([startRedis(), startCluster()]);
  });
  afterAll(async () => {
    await Promise.all([server?.stop(), cluster?.stop()]);
  });

  const clients: Record<string, () => RedisClient> = {
    Redis: () => new Redis(server.url, SENDS_ONCE),
    Cluster: () => new Cluster(cluster.nodes, { redisOptions: SENDS_ONCE }),
  };

  it.each(Object.keys(clients))('of %s has no more listeners once they have closed', async (kind) => {
    const client = clients[kind]!();
    cleanups.push(() => client.disconnect());
    client.on('error', () => undefined);
    await new Promise((resolve) => client.once('ready', resolve));
    const emitters = () => [client, ...(client instanceof Cluster ? client.nodes('all') : [])];
    // A first command opens what else a client has.
    await client.get('any');
    const first = await open(client);
    await first.get(LimiterService).for('prefetched').consume('user:1');
    await first.close();
    const before = emitters().map(listeners);
    for (let i = 0; i < 3; i++) {
      const app = await open(client);
      await app.get(LimiterService).for('prefetched').consume('user:1');
      await app.close();
    }
    expect(emitters().map(listeners)).toEqual(before);
    expect(client.listenerCount('error')).toBe(1);
    expect(client.listenerCount('+node')).toBe(0);
    await expect(client.get('any')).resolves.toBeNull();
  });

  it('has none either if it never came up', async () => {
    const client = new Redis(await freePort(), '127.0.0.1', {
      ...SENDS_ONCE,
      lazyConnect: true,
      retryStrategy: () => 20,
    });
    cleanups.push(() => client.disconnect());
    client.on('error', () => undefined);
    const app = await open(client);
    await app.close();
    // What else there is are the client's own.
    expect(listeners(client)).toMatchObject({ error: 1 });
    expect(client.listenerCount('end')).toBe(0);
  });
});

describe('an app whose Redis refuses the connection', () => {
  it.each<[string, (port: number) => NonNullable<RateLimitModuleOptions['redis']>]>([
    ['by a URL', (port) => `redis://127.0.0.1:${port}`],
    ['with Sentinels', (port) => ({ sentinels: [{ host: '127.0.0.1', port }], name: 'mymaster' })],
    ['in a Cluster', (port) => ({ nodes: [{ host: '127.0.0.1', port }] })],
  ])('starts at once, on the fallback: %s', async (_, to) => {
    const port = await freePort();
    await whileNoTimeIsOver(async () => {
      const app = await open(to(port));
      cleanups.push(() => app.close());
      const decision = await app.get(LimiterService).for('prefetched').consume('user:1');
      expect(decision).toMatchObject({ allowed: true, source: 'fallback' });
    });
  });

  it('has ended is not waited for', async () => {
    const client = new Redis(await freePort(), '127.0.0.1', {
      ...SENDS_ONCE,
      lazyConnect: true,
      retryStrategy: () => null,
    });
    client.on('error', () => undefined);
    await client.connect().catch(() => undefined);
    if (client.status !== 'end') await new Promise((resolve) => client.once('end', resolve));
    await whileNoTimeIsOver(async () => {
      const app = await open(client);
      await app.close();
    });
  });
});
