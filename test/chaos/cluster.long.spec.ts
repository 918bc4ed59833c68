import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis } from 'ioredis';
import { RedisStore } from '../../lib/index.js';
import { ensureBuilt } from '../support/processes/built.js';
import { scenarioMs, until } from '../support/processes/chaos.js';
import { AFTERWARDS_MS, counted, countersOf, ends, expectFailover, keysOf } from '../support/redis/failovers.js';
import { allowedByRedis, expectInvariants, runUnderLoad, untilUsedUp } from '../support/processes/load.js';
import { type RedisCluster, type RedisServer, startCluster } from '../support/redis/redis-servers.js';
import { ask, compile } from '../support/limits/stores.js';
import { PATIENCE_MS } from '../support/redis/patience.mjs';

beforeAll(ensureBuilt);

const connections: Record<string, (nodes: RedisCluster['nodes']) => object> = {
  'a connection of its own': (nodes) => ({ nodes }),
  'a client of node-redis': (nodes) => ({ nodeRedis: { nodes } }),
};

describe.each(Object.entries(connections))('on a Cluster, with %s', (_, redisOf) => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  });
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
      const redis = redisOf(cluster.nodes);
      const timeoutMs = scenarioMs(0) + 500_000;
      const results = await runUnderLoad({ redis, counters, during, timeoutMs, pairs: true });
      expect(moved).toBeGreaterThanOrEqual(counters.length);
      expectInvariants(results, counters, 0);
      expectFailover(results);
      const allowed = allowedByRedis(results, counters);
      const client = new Cluster(cluster.nodes);
      const store = new RedisStore(client, { prefix, timeoutMs: PATIENCE_MS, ownsClient: true });
      await store.open();
      for (const [index, { options, quota, identity }] of counters.entries()) {
        const limit = compile(options, `limit-${index}`);
        const { remaining } = await ask(store, limit, { identity, peek: true });
        // A check that nobody waited for any longer may have been charged all the same.
        const unknown = results.reduce((sum, result) => sum + result.unknown[index]!, 0);
        // Of a pair whose second slot is on its way, the first unit may not come back, as its slot is on its way, too.
        const stranded = quota * 0.05;
        expect(remaining).toBeLessThanOrEqual(quota - allowed[index]!);
        expect(remaining).toBeGreaterThanOrEqual(quota - allowed[index]! - unknown - stranded);
      }
      await store.close();
    },
    scenarioMs(0) + 600_000,
  );

  for (const [what, { end, undo }] of Object.entries(ends)) {
    it(`a master that ${what} under load is replaced, and no more allowed than for one loss of the state`, async () => {
      const counters = countersOf([100]);
      let lost: RedisServer | undefined;
      const during = async (prefix: string) => {
        const masters = await cluster.masters();
        await counted(masters, prefix, counters.length);
        await untilUsedUp(new Cluster(cluster.nodes), prefix, counters);
        lost = masters[0]!;
        await end(lost);
        await until('the replica is promoted', async () => (await cluster.masters()).length === 3);
        await sleep(AFTERWARDS_MS);
      };
      const results = await runUnderLoad({ redis: redisOf(cluster.nodes), counters, during, timeoutMs: 500_000 });
      await undo(lost!);
      await until('it is back', () => cluster.servers.every(({ running }) => running));
      expectInvariants(results, counters, 1);
      expectFailover(results);
    });
  }
});

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
