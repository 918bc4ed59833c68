import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { algorithmNames } from '../support/limits/arbitraries.js';
import { ensureBuilt } from '../support/processes/built.js';
import { scenarioMs, until } from '../support/processes/chaos.js';
import {
  allowedByRedis,
  expectInvariants,
  type LoadedCounter,
  optionsOf,
  runUnderLoad,
  untilUsedUp,
} from '../support/processes/load.js';
import { startRedis, type RedisServer } from '../support/redis/redis-servers.js';

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
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
  });

  type Reports = readonly (string | undefined)[];
  /** The first process remembers refusals, and may ask nothing meanwhile. */
  const allReport = (reports: Reports, state: string) =>
    until(`all report ${state}`, () => reports.slice(1).every((report) => report === state), 500_000);
  /** What happens to Redis, and whether it loses its state. */
  const events: [what: string, loses: boolean, happen: (reports: Reports) => Promise<unknown>][] = [
    ['FLUSHALL', true, () => admin.flushall()],
    ['SCRIPT FLUSH', false, () => admin.script('FLUSH')],
    ['SCRIPT FLUSH and FLUSHALL', true, () => admin.multi().script('FLUSH').flushall().exec()],
    [
      'a stop',
      false,
      async (reports) => {
        server.pause();
        await allReport(reports, 'failing');
        server.resume();
        await allReport(reports, 'recovered');
      },
    ],
    [
      'a crash',
      true,
      async (reports) => {
        await server.kill();
        // It hears no more of others' changes, so it asks as well.
        await until('all report failing', () => reports.every((report) => report === 'failing'));
        await server.start();
      },
    ],
  ];

  it(
    'are never allowed more than the quota for each time that Redis loses its state, and once',
    async () => {
      let losses = 0;
      const during = async (prefix: string, reports: Reports) => {
        const end = Date.now() + LENGTH_MS;
        await untilUsedUp(admin.duplicate(), prefix, counters);
        do {
          for (const [, loses, happen] of events) {
            await happen(reports);
            if (loses) losses += 1;
            await untilUsedUp(admin.duplicate(), prefix, counters);
          }
        } while (Date.now() < end);
      };
      const results = await runUnderLoad({ redis: server.url, counters, during, timeoutMs: LENGTH_MS + 500_000 });
      expectInvariants(results, counters, losses);
      // The quotas were used up each time, or nothing would be proved.
      expect(losses).toBeGreaterThanOrEqual(3);
      expect(Math.min(...allowedByRedis(results, counters))).toBeGreaterThan(QUOTA * losses);
      for (const { reports } of results) {
        expect(reports.filter((_, index) => index % 2 === 0).every((state) => state === 'failing')).toBe(true);
        expect(reports.at(-1)).toBe('recovered');
      }
    },
    LENGTH_MS + 600_000,
  );
});
