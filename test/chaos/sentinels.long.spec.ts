import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { ensureBuilt } from '../support/processes/built.js';
import { until } from '../support/processes/chaos.js';
import { AFTERWARDS_MS, counted, countersOf, ends, expectFailover } from '../support/redis/failovers.js';
import { allowedByRedis, expectInvariants, runUnderLoad, untilUsedUp } from '../support/processes/load.js';
import { type RedisSentinel, type RedisServer, startSentinel } from '../support/redis/redis-servers.js';

beforeAll(ensureBuilt);

const connections: Record<string, (sentinel: Pick<RedisSentinel, 'sentinels' | 'name'>) => object> = {
  'a connection of its own': (sentinel) => sentinel,
  'a client of node-redis': (sentinel) => ({ nodeRedis: sentinel }),
};

describe.each(Object.entries(connections))('with Sentinels, with %s', (_, redisOf) => {
  let sentinel: RedisSentinel;

  beforeEach(async () => {
    sentinel = await startSentinel();
  });
  afterEach(() => sentinel?.stop());

  for (const [what, { end }] of Object.entries(ends)) {
    it(`a master that ${what} under load is replaced, and no more allowed than for one loss of the state`, async () => {
      const { sentinels, name, master, replica } = sentinel;
      const counters = countersOf([100]);
      const during = async (prefix: string) => {
        await counted([replica], prefix, counters.length);
        await untilUsedUp(new Redis(master.url), prefix, counters);
        await end(master);
        await until('the replica is promoted', () => isMaster(replica));
        await sleep(AFTERWARDS_MS);
      };
      const results = await runUnderLoad({ redis: redisOf({ sentinels, name }), counters, during, timeoutMs: 500_000 });
      expectInvariants(results, counters, 1);
      expect(Math.min(...allowedByRedis(results, counters))).toBeGreaterThanOrEqual(90);
      expectFailover(results);
    });
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
