import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { algorithmNames } from '../support/arbitraries.js';
import { ensureBuilt } from '../support/built.js';
import { scenarioMs, until } from '../support/chaos.js';
import { allowedByRedis, expectInvariants, type LoadedCounter, optionsOf, runUnderLoad } from '../support/load.js';
import { startRedis, type RedisServer } from '../support/redis-servers.js';

const QUOTA = 100;
const LENGTH_MS = scenarioMs(0);

const counters: LoadedCounter[] = algorithmNames.flatMap((algo) =>
  (['local', 'deny'] as const).map((onStoreError) => ({
    options: optionsOf(algo, QUOTA),
    quota: QUOTA,
    identity: `user:${onStoreError}`,
    onStoreError,
  })),
);

describe('processes under load', () => {
  let server: RedisServer;
  let admin: Redis;

  beforeAll(async () => {
    await ensureBuilt();
    server = await startRedis();
    admin = new Redis(server.url, { retryStrategy: () => 20 });
    admin.on('error', () => undefined);
  }, 120_000);
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
  });

  /** Until Redis counts for all limits, and a while longer, in which their quotas are used up. */
  const usedUp = async (prefix: string) => {
    await until('all limits are counted', async () => (await admin.keys(`${prefix}:{*`)).length >= counters.length);
    await sleep(500);
  };
  /** What happens to Redis, and whether it loses its state. */
  const events: [what: string, loses: boolean, happen: () => Promise<unknown>][] = [
    ['FLUSHALL', true, () => admin.flushall()],
    ['SCRIPT FLUSH', false, () => admin.script('FLUSH')],
    ['SCRIPT FLUSH and FLUSHALL', true, () => admin.multi().script('FLUSH').flushall().exec()],
    [
      'a stop',
      false,
      async () => {
        server.pause();
        await sleep(600);
        server.resume();
        await sleep(1500);
      },
    ],
    [
      'a crash',
      true,
      async () => {
        await server.kill();
        await sleep(200);
        await server.start();
      },
    ],
  ];

  it(
    'are never allowed more than the quota for each time that Redis loses its state, and once',
    async () => {
      let losses = 0;
      const during = async (prefix: string) => {
        const end = Date.now() + LENGTH_MS;
        await usedUp(prefix);
        do {
          for (const [, loses, happen] of events) {
            await happen();
            if (loses) losses += 1;
            await usedUp(prefix);
          }
        } while (Date.now() < end);
      };
      const results = await runUnderLoad({ redis: server.url, counters, during, timeoutMs: LENGTH_MS + 60_000 });
      expectInvariants(results, counters, losses);
      // The quotas were used up each time, or nothing would be proved.
      expect(losses).toBeGreaterThanOrEqual(3);
      expect(Math.min(...allowedByRedis(results, counters))).toBeGreaterThan(QUOTA * losses);
      for (const { reports } of results) {
        expect(reports.filter((_, index) => index % 2 === 0).every((state) => state === 'failing')).toBe(true);
        expect(reports.at(-1)).toBe('recovered');
      }
    },
    LENGTH_MS + 90_000,
  );
});
