import { expect } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';
import { type AlgorithmOptions, type OnStoreError, RedisStore } from '../../../lib/index.js';
import type { algorithmNames } from '../limits/arbitraries.js';
import { bundledWorker } from './bundled-worker.js';
import { until } from './chaos.js';
import { runProcesses } from './run-processes.js';
import { ask, compile, freshPrefix } from '../limits/stores.js';
import { PATIENCE_MS } from '../redis/patience.mjs';

const worker = bundledWorker('load-worker.mjs');

const PROCESSES = 3;
const IN_FLIGHT = 16;
const TIMEOUT_MS = 250;
/** The slowest of all checks, in the time that the process had: beyond its deadline, some turns of the event loop. */
const SLOWEST_MS = TIMEOUT_MS + 100;

/** Limits of so many units of which none comes back while a test runs. */
export function optionsOf(algo: (typeof algorithmNames)[number], quota: number): AlgorithmOptions {
  switch (algo) {
    case 'calendar-window':
      return { algo, rate: quota, period: 'year' };
    case 'leaky-bucket':
      return { algo, rate: 1, interval: '1d', queue: quota - 1 };
    case 'token-bucket':
    case 'gcra':
      return { algo, rate: 1, interval: '1d', burst: quota };
    default:
      return { algo, rate: quota, interval: '1d' };
  }
}

/** A limit of so many units, and whom it counts. */
export interface LoadedCounter {
  readonly options: AlgorithmOptions;
  readonly quota: number;
  readonly identity: string;
  readonly onStoreError: OnStoreError;
}

/** What a process counted. */
export interface LoadResult {
  readonly asked: number;
  readonly answered: number;
  /** In the time that the process had for itself, as the next. */
  readonly slowestMs: number;
  /** The longest time in which Redis decided nothing. */
  readonly longestGapMs: number;
  /** Units that were allowed, of each counter. */
  readonly allowed: { readonly redis: number[]; readonly fallback: number[] };
  /** Checks of each counter that Redis was not waited for: it may have charged them. */
  readonly unknown: number[];
  readonly reports: string[];
}

export interface LoadOptions {
  /** Where Redis is, as an app says it. */
  readonly redis: unknown;
  readonly counters: readonly LoadedCounter[];
  /** What happens to Redis meanwhile. It can look at what each process reported last. */
  readonly during: (prefix: string, reports: readonly (string | undefined)[]) => Promise<void>;
  readonly timeoutMs: number;
  /** Whether half of the checks are of two counters, which they are charged for both or neither. @default false */
  readonly pairs?: boolean;
}

/** Several processes ask for the same limits at once, the first of which remembers refusals. */
export async function runUnderLoad({
  redis,
  counters,
  during,
  timeoutMs,
  pairs = false,
}: LoadOptions): Promise<LoadResult[]> {
  const prefix = freshPrefix();
  const input = { redis, prefix, counters, inFlight: IN_FLIGHT, timeoutMs: TIMEOUT_MS, pairs };
  const inputs = Array.from({ length: PROCESSES }, (_, index) => ({ ...input, refusalCache: index === 0 }));
  const reports: (string | undefined)[] = inputs.map(() => undefined);
  return runProcesses<LoadResult>(await worker(), inputs, {
    timeoutMs,
    during: () => during(prefix, reports),
    onTold: (index, state) => (reports[index] = state as string),
  });
}

/** Waits until Redis has nothing left of any quota, by a connection that it closes. */
export async function untilUsedUp(
  client: Redis | Cluster,
  prefix: string,
  counters: readonly LoadedCounter[],
): Promise<void> {
  client.on('error', () => undefined);
  const store = new RedisStore(client, { prefix, timeoutMs: PATIENCE_MS, ownsClient: true });
  await store.open();
  await until('all quotas are used up', async () => {
    const peeks = counters.map(({ options, identity }, index) =>
      ask(store, compile(options, `limit-${index}`), { identity, peek: true }).catch(() => undefined),
    );
    return (await Promise.all(peeks)).every((decision) => decision?.remaining === 0);
  });
  await store.close();
}

/** What Redis allowed of each counter, in all processes together. */
export function allowedByRedis(results: readonly LoadResult[], counters: readonly LoadedCounter[]): number[] {
  return counters.map((_, index) => results.reduce((sum, { allowed }) => sum + allowed.redis[index]!, 0));
}

/**
 * Every check was answered in time; what Redis allowed is no more than the quota for each time that it lost its state, and once;
 * and while it failed each process allowed what `onStoreError` says.
 */
export function expectInvariants(
  results: readonly LoadResult[],
  counters: readonly LoadedCounter[],
  losses: number,
): void {
  for (const { asked, answered, slowestMs, allowed } of results) {
    expect(asked).toBeGreaterThan(0);
    expect(answered).toBe(asked);
    expect(slowestMs).toBeLessThan(SLOWEST_MS);
    for (const [index, { onStoreError, quota }] of counters.entries()) {
      expect(allowed.fallback[index]).toBeLessThanOrEqual(onStoreError === 'local' ? quota : 0);
    }
  }
  for (const [index, allowed] of allowedByRedis(results, counters).entries()) {
    expect(allowed).toBeLessThanOrEqual(counters[index]!.quota * (1 + losses));
  }
}
