import { fileURLToPath } from 'node:url';
import { expect } from '@jest/globals';
import type { AlgorithmOptions } from '../../lib/algorithms/index.js';
import type { OnStoreError } from '../../lib/limits/compiled-limit.js';
import type { algorithmNames } from './arbitraries.js';
import { isLong } from './chaos.js';
import { runProcesses } from './run-processes.js';
import { freshPrefix } from './stores.js';

const WORKER = fileURLToPath(new URL('load-worker.mjs', import.meta.url));

const PROCESSES = 3;
const IN_FLIGHT = 16;
const TIMEOUT_MS = 250;
/** The slowest of all checks; nobody has the machine for himself, and what waits on it waits beyond its deadline. */
const SLOWEST_MS = TIMEOUT_MS + (isLong ? 500 : 1500);

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
  readonly slowestMs: number;
  /** The longest time in which Redis decided nothing. */
  readonly longestGapMs: number;
  /** Units that were allowed, of each counter. */
  readonly allowed: { readonly redis: number[]; readonly fallback: number[] };
  readonly reports: string[];
}

export interface LoadOptions {
  /** Where Redis is, as an app says it. */
  readonly redis: unknown;
  readonly counters: readonly LoadedCounter[];
  /** What happens to Redis meanwhile. */
  readonly during: (prefix: string) => Promise<void>;
  readonly timeoutMs: number;
  /** Whether half of the checks are of two counters, which they are charged for both or neither. @default false */
  readonly pairs?: boolean;
}

/** Several processes ask for the same limits at once, the first of which remembers refusals. */
export function runUnderLoad({
  redis,
  counters,
  during,
  timeoutMs,
  pairs = false,
}: LoadOptions): Promise<LoadResult[]> {
  const prefix = freshPrefix();
  const input = { redis, prefix, counters, inFlight: IN_FLIGHT, timeoutMs: TIMEOUT_MS, pairs };
  const inputs = Array.from({ length: PROCESSES }, (_, index) => ({ ...input, refusalCache: index === 0 }));
  return runProcesses<LoadResult>(WORKER, inputs, { timeoutMs, during: () => during(prefix) });
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
