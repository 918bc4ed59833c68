import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import { RedisStore } from '../../lib/stores/redis/redis.store.js';
import { algorithmNames } from '../support/arbitraries.js';
import { ensureBuilt } from '../support/built.js';
import { isLong, scenarioMs, until } from '../support/chaos.js';
import {
  allowedByRedis,
  expectInvariants,
  type LoadedCounter,
  type LoadResult,
  optionsOf,
  runUnderLoad,
} from '../support/load.js';
import {
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  startCluster,
  startSentinel,
} from '../support/redis-servers.js';
import { ask, compile } from '../support/stores.js';

/** How long Redis may decide nothing after a master is gone: that is noticed in 1 s or 2 s, and another one elected. */
const FAILOVER_MS = 12_000;
/** How long the processes are given to find the new master. */
const RECONNECT_MS = isLong ? 10_000 : 3000;

const countersOf = (quotas: readonly number[]): LoadedCounter[] =>
  algorithmNames.map((algo, index) => {
    const quota = quotas[index % quotas.length]!;
    const onStoreError = index % 2 === 0 ? 'deny' : 'local';
    return { options: optionsOf(algo, quota), quota, identity: `user:${index}`, onStoreError };
  });

/** All processes were answered by Redis again, and soon. */
function expectFailover(results: readonly LoadResult[]): void {
  for (const { longestGapMs, reports } of results) {
    expect(longestGapMs).toBeLessThan(FAILOVER_MS);
    // A node of a Cluster does not come back, but another one takes its place.
    expect(['recovered', 'replaced']).toContain(reports.at(-1) ?? 'recovered');
  }
}

interface End {
  readonly end: (master: RedisServer) => unknown;
  readonly undo: (master: RedisServer) => unknown;
  readonly test: (name: string, run: () => Promise<void>, timeoutMs: number) => void;
}

/** How a master ends, and comes back later as a replica. */
const ends: Record<string, End> = {
  'is killed': { end: (master) => master.kill(), undo: (master) => master.start(), test: it },
  // Its connection is given up after two seconds, and its replacement found.
  'is stopped': {
    end: (master) => master.pause(),
    undo: (master) => master.resume(),
    test: isLong ? it : it.skip,
  },
};

/** The keys of all masters. */
async function keysOf(servers: readonly RedisServer[], prefix: string): Promise<string[]> {
  const clients = servers.map(({ url }) => new Redis(url));
  try {
    return (await Promise.all(clients.map((client) => client.keys(`${prefix}:{*`)))).flat();
  } finally {
    for (const client of clients) client.disconnect();
  }
}

const counted = (servers: readonly RedisServer[], prefix: string, count: number) =>
  until('all limits are counted', async () => (await keysOf(servers, prefix)).length >= count);

beforeAll(ensureBuilt, 120_000);

describe('with Sentinels', () => {
  let sentinel: RedisSentinel;

  beforeEach(async () => {
    sentinel = await startSentinel();
  }, 60_000);
  afterEach(() => sentinel?.stop());

  for (const [what, { end, test }] of Object.entries(ends)) {
    test(`a master that ${what} under load is replaced, and no more allowed than for one loss of the state`, async () => {
      const { sentinels, name, master, replica } = sentinel;
      const counters = countersOf([100]);
      const during = async (prefix: string) => {
        await counted([replica], prefix, counters.length);
        await sleep(300);
        await end(master);
        await until('the replica is promoted', () => isMaster(replica));
        await sleep(RECONNECT_MS);
      };
      const results = await runUnderLoad({ redis: { sentinels, name }, counters, during, timeoutMs: 40_000 });
      expectInvariants(results, counters, 1);
      expect(Math.min(...allowedByRedis(results, counters))).toBeGreaterThanOrEqual(90);
      expectFailover(results);
    }, 60_000);
  }
});

describe('on a Cluster', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  }, 60_000);
  afterAll(() => cluster?.stop());

  it(
    'slots that are moved under load neither lose nor double what was counted, nor what was given back',
    async () => {
      const counters = countersOf([600, 150]);
      let moved = 0;
      let prefix = '';
      const during = async (current: string) => {
        prefix = current;
        const masters = await cluster.masters();
        await counted(masters, prefix, counters.length);
        const slots = [...new Set((await keysOf(masters, prefix)).map((key) => calculateSlot(key)))];
        const end = Date.now() + scenarioMs(0);
        do {
          for (const slot of slots) {
            await moveSlot(masters, slot);
            moved += 1;
          }
        } while (Date.now() < end);
      };
      const redis = { nodes: cluster.nodes };
      const timeoutMs = scenarioMs(0) + 40_000;
      const results = await runUnderLoad({ redis, counters, during, timeoutMs, pairs: true });
      expect(moved).toBeGreaterThanOrEqual(counters.length);
      expectInvariants(results, counters, 0);
      expectFailover(results);
      const allowed = allowedByRedis(results, counters);
      const client = new Cluster(cluster.nodes);
      const store = new RedisStore(client, { prefix, timeoutMs: 5000, ownsClient: true });
      await store.open();
      for (const [index, { options, quota, identity }] of counters.entries()) {
        const limit = compile(options, `limit-${index}`);
        const { remaining } = await ask(store, limit, { identity, peek: true });
        // What Redis charged for a check that nobody waited for any longer was not counted as allowed.
        expect(remaining).toBeLessThanOrEqual(quota - allowed[index]!);
        expect(remaining).toBeGreaterThanOrEqual(quota - allowed[index]! - quota * 0.05);
      }
      await store.close();
    },
    scenarioMs(0) + 60_000,
  );

  for (const [what, { end, undo, test }] of Object.entries(ends)) {
    test(`a master that ${what} under load is replaced, and no more allowed than for one loss of the state`, async () => {
      const counters = countersOf([100]);
      let lost: RedisServer | undefined;
      const during = async (prefix: string) => {
        const masters = await cluster.masters();
        await counted(masters, prefix, counters.length);
        await sleep(300);
        lost = masters[0]!;
        await end(lost);
        await until('the replica is promoted', async () => (await cluster.masters()).length === 3);
        await sleep(RECONNECT_MS);
      };
      const results = await runUnderLoad({ redis: { nodes: cluster.nodes }, counters, during, timeoutMs: 40_000 });
      await undo(lost!);
      await until('it is back', () => cluster.servers.every(({ running }) => running));
      expectInvariants(results, counters, 1);
      expectFailover(results);
    }, 60_000);
  }
});

/** One that does not answer is none. */
async function isMaster({ url }: RedisServer): Promise<boolean> {
  const client = new Redis(url, { retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    return (await client.info('replication')).includes('role:master');
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
}

/** Moves a slot to the next master, key by key, as an operator does: meanwhile the old one answers MOVED and ASK. */
async function moveSlot(servers: readonly RedisServer[], slot: number): Promise<void> {
  const masters = servers.map((server) => ({ server, client: new Redis(server.url) }));
  try {
    const ids = await Promise.all(masters.map(({ client }) => client.cluster('MYID')));
    const ranges = await masters[0]!.client.cluster('SLOTS');
    const [, , [, , owner] = []] = ranges.find(([first, last]) => first <= slot && slot <= last) ?? [];
    const from = ids.indexOf(owner!);
    const to = (from + 1) % masters.length;
    const [source, target] = [masters[from]!, masters[to]!];
    await target.client.cluster('SETSLOT', slot, 'IMPORTING', ids[from]!);
    await source.client.cluster('SETSLOT', slot, 'MIGRATING', ids[to]!);
    // Keys that are new are asked of the other one from now on.
    await sleep(30);
    for (;;) {
      const keys = await source.client.cluster('GETKEYSINSLOT', slot, 1);
      if (keys.length === 0) break;
      await migrate(source.client, target.server, keys);
      await sleep(20);
    }
    for (const { client } of [target, source]) await client.cluster('SETSLOT', slot, 'NODE', ids[to]!);
  } finally {
    for (const { client } of masters) client.disconnect();
  }
}

function migrate(source: Redis, target: RedisServer, keys: readonly string[]): Promise<unknown> {
  return source.call('MIGRATE', target.host, target.port, '', '0', '5000', 'KEYS', ...keys);
}
