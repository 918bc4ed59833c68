import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'iovalkey';
import {
  type AlgorithmOptions,
  type LimitDefinition,
  LimiterService,
  RateLimitModule,
  type RedisClient,
} from '../../../lib/index.js';
import { type RedisCluster, type RedisServer, startCluster, startRedis } from '../../support/redis/redis-servers.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PATIENCE } from '../../support/redis/patience.mjs';

const hour = { rate: 2, interval: '1h' } as const;
const limits = {
  'fixed-window': { algo: 'fixed-window', ...hour },
  'calendar-window': { algo: 'calendar-window', rate: 2, period: 'year', retain: '1d' },
  'sliding-window': { algo: 'sliding-window', ...hour },
  'sliding-log': { algo: 'sliding-log', ...hour },
  'token-bucket': { algo: 'token-bucket', ...hour },
  'leaky-bucket': { algo: 'leaky-bucket', ...hour, queue: 1 },
  gcra: { algo: 'gcra', ...hour },
  concurrency: { algo: 'concurrency', limit: 2, ttl: '1h' },
  budget: { algo: 'budget', limit: 2, period: 'year' },
} satisfies Partial<Record<AlgorithmOptions['algo'], LimitDefinition>>;

const closings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0)) await close();
});

async function start(client: Redis | Cluster, prefix = freshPrefix()): Promise<LimiterService> {
  const redis = client as unknown as RedisClient;
  const testing = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ redis, prefix, timeout: PATIENCE, onStoreError: 'deny', define: limits })],
  }).compile();
  testing.useLogger(false);
  await testing.init();
  closings.push(() => testing.close());
  return testing.get(LimiterService);
}

let server: RedisServer;
let cluster: RedisCluster;
const clients: { server?: Redis; cluster?: Cluster } = {};
beforeAll(async () => {
  cluster = await startCluster();
  server = await startRedis();
  clients.server = new Redis(server.url);
  clients.cluster = new Cluster(cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
  await clients.cluster.ping();
});
afterAll(async () => {
  await clients.server?.quit();
  await server?.stop();
  await clients.cluster?.quit();
  await cluster?.stop();
});

describe.each(['server', 'cluster'] as const)('a connection of iovalkey to a %s', (kind) => {
  it.each(Object.keys(limits))('%s allows its quota and no more', async (name) => {
    const limiter = (await start(clients[kind]!)).for(name);
    const decisions = await Promise.all([1, 2, 3].map(() => limiter.consume('acme')));
    expect(decisions.map(({ allowed, remaining, source }) => [allowed, remaining, source])).toEqual([
      [true, 1, 'redis'],
      [true, 0, 'redis'],
      [false, 0, 'redis'],
    ]);
  });

  it('is given the script again once it is lost', async () => {
    const limiters = await start(clients[kind]!);
    const nodes = kind === 'server' ? [clients.server!] : clients.cluster!.nodes('master');
    await Promise.all(nodes.map((node) => node.script('FLUSH')));
    expect(await limiters.for('gcra').consume('acme')).toMatchObject({ allowed: true, source: 'redis' });
  });

  it('carries changes of rates from instance to instance', async () => {
    const prefix = freshPrefix();
    const [one, other] = [await start(clients[kind]!, prefix), await start(clients[kind]!, prefix)];
    await one.setRate('gcra', { rate: 7 });
    const quota = async () => (await other.for('gcra').peek('acme')).quota;
    for (let turn = 0; turn < 200 && (await quota()) !== 7; turn++) await new Promise((next) => setTimeout(next, 20));
    expect(await quota()).toBe(7);
  });
});
