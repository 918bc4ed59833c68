import { beforeAll, describe, expect, it } from '@jest/globals';
import { algorithmNames } from '../support/limits/arbitraries.js';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { isLong } from '../support/processes/chaos.js';
import { optionsOf } from '../support/processes/load.js';
import { freePort } from '../support/processes/ports.mjs';
import { startRedis, type RedisServer } from '../support/redis/redis-servers.js';
import { runProcesses, STEADY_HEAP } from '../support/processes/run-processes.js';
import { freshPrefix } from '../support/limits/stores.js';

const leakWorker = bundledWorker('leak-worker.mjs');
const shutDownWorker = bundledWorker('shut-down-worker.mjs');

/**
 * The heap is measured after each round. What is bounded makes it wander, which over few rounds may look like a trend, or hide one;
 * over many it does not. Many are run only if few do not show what is expected.
 */
const FEW_ROUNDS = 16;
const MANY_ROUNDS = 48;
const CHECKS = isLong ? 80_000 : 1000;
/** In these all code runs, and what is bounded grows as large as it may. */
const WARM_UP = 2000;
/** The most that the heap may grow, in bytes a check: the smallest object that is kept a check takes more than twice as many. */
const MAX_TREND_BYTES = 16;
/**
 * How far the numbers of timers and sockets may be apart: each of three connections is being made, or pauses before it is, and a few
 * timers are shared by all checks. What is kept a check, or a round, makes more.
 */
const MAX_SPREAD = 12;
const TIMEOUT_MS = 500_000 + MANY_ROUNDS * CHECKS;
/** What the app is asked when it is closed: so many checks, and units for which so many wait. */
const IN_FLIGHT = 200;
const WAITING = 5;

interface Held {
  /** Bytes of the heap in use after each round. */
  readonly heaps: number[];
  /** Timers, sockets and the like after each round. */
  readonly resources: number[];
  readonly sources: string[];
}

/** The slope of a line through values that are taken at even distances: the median of the slopes between all pairs (Theil and Sen). */
function trendOf(values: readonly number[]): number {
  const slopes = values.flatMap((from, i) => values.slice(i + 1).map((to, j) => (to - from) / (j + 1)));
  return slopes.toSorted((a, b) => a - b)[Math.floor(slopes.length / 2)]!;
}

const bytesACheck = ({ heaps }: Held) => trendOf(heaps) / CHECKS;
const leaks = (held: Held) => bytesACheck(held) >= MAX_TREND_BYTES;
const nowhere = async () => `redis://127.0.0.1:${await freePort()}`;

beforeAll(ensureBuilt);

describe('over very many checks', () => {
  const limits = [
    ...algorithmNames.map((algo) => optionsOf(algo, 20)),
    { algo: 'concurrency', limit: 5, ttl: '1s' },
    { algo: 'fixed-window', rate: 3, interval: '50ms' },
  ];

  const measure = async (input: { redis: string | undefined; leak?: boolean }, rounds: number): Promise<Held> => {
    const task = { ...input, prefix: freshPrefix(), limits, warmUp: WARM_UP, rounds, checks: CHECKS };
    const options = { timeoutMs: TIMEOUT_MS, flags: STEADY_HEAP };
    const [held] = await runProcesses<Held>(await leakWorker(), [task], options);
    return held!;
  };

  it.concurrent.each([
    ['that Redis decides', () => process.env['TEST_REDIS_URL'], ['redis']],
    ['without Redis', nowhere, ['fallback']],
  ] as const)(
    '%s, no memory, timer or socket is kept',
    async (_, redis, sources) => {
      const input = { redis: await redis() };
      let held = await measure(input, FEW_ROUNDS);
      if (leaks(held)) held = await measure(input, MANY_ROUNDS);
      expect(held.sources.toSorted()).toEqual([...sources].toSorted());
      expect(bytesACheck(held)).toBeLessThan(MAX_TREND_BYTES);
      expect(Math.max(...held.resources) - Math.min(...held.resources)).toBeLessThan(MAX_SPREAD);
    },
    TIMEOUT_MS + 10_000,
  );

  it.concurrent(
    'one small object that is kept a check is told',
    async () => {
      const input = { redis: await nowhere(), leak: true };
      let held = await measure(input, FEW_ROUNDS);
      if (!leaks(held)) held = await measure(input, MANY_ROUNDS);
      expect(bytesACheck(held)).toBeGreaterThan(MAX_TREND_BYTES);
    },
    TIMEOUT_MS + 10_000,
  );
});

interface ShutDown {
  /** Who decided each check, or the error that it was rejected with. */
  readonly settled: string[];
  /** In the time that the process had for itself, as the next. */
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
      // A Redis that answers does so in time, however busy the machine is.
      const timeout = state === 'answers' ? '30s' : '250ms';
      const input = { redis: server.url, prefix: freshPrefix(), timeout, inFlight: IN_FLIGHT, waiting: WAITING };
      const during = async () => states[state](server);
      const [result] = await runProcesses<ShutDown>(await shutDownWorker(), [input], { during });
      return result!;
    } finally {
      await server.stop();
    }
  };

  const anyone = ['redis', 'fallback'];

  it.concurrent.each([
    ['answers', 500, ['redis']],
    ['is stopped', 500, anyone],
    ['is killed', 3000, anyone],
  ] as const)('ends all of it, while Redis %s', async (state, longestMs, deciders) => {
    const { settled, closedMs, quietMs } = await closeWhileRedis(state);
    const consumed = settled.slice(0, -WAITING);
    expect(consumed).toHaveLength(IN_FLIGHT);
    expect(consumed.filter((by) => !deciders.some((decider) => decider === by))).toEqual([]);
    // One may get the unit that the fallback has, if it took over before the app was closed.
    const granted = settled.slice(-WAITING).filter((by) => by !== 'RateLimitStoreError');
    expect(granted).toEqual(deciders === anyone && granted.length > 0 ? ['fallback'] : []);
    expect(closedMs).toBeLessThan(2000);
    expect(quietMs).toBeLessThan(longestMs);
  });
});
