import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { algorithmNames } from '../support/arbitraries.js';
import { ensureBuilt } from '../support/built.js';
import { isLong } from '../support/chaos.js';
import { optionsOf } from '../support/load.js';
import { freePort } from '../support/ports.mjs';
import { startRedis, type RedisServer } from '../support/redis-servers.js';
import { runProcesses } from '../support/run-processes.js';
import { freshPrefix } from '../support/stores.js';

const workerOf = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url));

const CHECKS = isLong ? 1_000_000 : 10_000;
/** In these the code is compiled, and what is bounded grows as large as it may. */
const WARM_UP = 15_000;
/** So much more of the heap may be in use afterwards; it is never quite the same. */
const MAX_GROWTH_BYTES = 1_000_000;
/** What the app is asked when it is closed: so many checks, and units for which so many wait. */
const IN_FLIGHT = 200;
const WAITING = 5;

interface Held {
  readonly heap: number;
  readonly resources: number;
}

beforeAll(ensureBuilt, 120_000);

describe('over very many checks', () => {
  const limits = [
    ...algorithmNames.map((algo) => optionsOf(algo, 20)),
    { algo: 'concurrency', limit: 5, ttl: '1s' },
    { algo: 'fixed-window', rate: 3, interval: '50ms' },
  ];

  it.each([
    ['that Redis decides', () => process.env['TEST_REDIS_URL'], ['redis']],
    ['without Redis', async () => `redis://127.0.0.1:${await freePort()}`, ['fallback']],
  ] as const)(
    '%s, no memory, timer or socket is kept',
    async (_, redis, sources) => {
      const input = { redis: await redis(), prefix: freshPrefix(), limits, warmUp: WARM_UP, checks: CHECKS };
      const timeoutMs = 30_000 + CHECKS / 2;
      const run = runProcesses<{ before: Held; after: Held; sources: string[] }>(workerOf('leak-worker.mjs'), [input], {
        timeoutMs,
        flags: ['--expose-gc'],
      });
      const [result] = await run;
      const { before, after } = result!;
      expect(result!.sources.toSorted()).toEqual([...sources].toSorted());
      expect(after.heap - before.heap).toBeLessThan(MAX_GROWTH_BYTES);
      // An attempt to connect may be under way, or a pause between two.
      expect(Math.abs(after.resources - before.resources)).toBeLessThanOrEqual(2);
    },
    40_000 + CHECKS / 2,
  );
});

interface ShutDown {
  /** Who decided each check, or the error that it was rejected with. */
  readonly settled: string[];
  readonly closedMs: number;
  /** How much longer there were timers or sockets. */
  readonly quietMs: number;
}

describe('an app that is closed while much is under way', () => {
  const states = {
    answers: () => undefined,
    'is stopped': (server: RedisServer) => server.pause(),
    'is killed': (server: RedisServer) => server.kill(),
  };
  const closeWhileRedis = async (state: keyof typeof states): Promise<ShutDown> => {
    const server = await startRedis();
    try {
      const input = { redis: server.url, prefix: freshPrefix(), inFlight: IN_FLIGHT, waiting: WAITING };
      const during = async () => states[state](server);
      const [result] = await runProcesses<ShutDown>(workerOf('shut-down-worker.mjs'), [input], { during });
      return result!;
    } finally {
      await server.stop();
    }
  };

  it.each([
    ['answers', 500],
    ['is stopped', 3000],
    ['is killed', 3000],
  ] as const)('ends all of it, while Redis %s', async (state, longestMs) => {
    const { settled, closedMs, quietMs } = await closeWhileRedis(state);
    const consumed = settled.slice(0, -WAITING);
    expect(consumed).toHaveLength(IN_FLIGHT);
    expect(consumed.every((by) => by === 'redis' || by === 'fallback')).toBe(true);
    expect(settled.slice(-WAITING)).toEqual(Array(WAITING).fill('RateLimitStoreError'));
    expect(closedMs).toBeLessThan(2000);
    expect(quietMs).toBeLessThan(longestMs);
  });

  it('leaves nothing behind at once, while Redis is stopped', async () => {
    expect((await closeWhileRedis('is stopped')).quietMs).toBeLessThan(500);
  });

  it('has Redis decide what was asked before', async () => {
    expect(new Set((await closeWhileRedis('answers')).settled)).not.toContain('fallback');
  });
});
