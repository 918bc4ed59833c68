import type { AlgorithmName } from '../../../engine/algorithms/index.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { ownStoreMessages } from '../../../engine/errors/messages/own-store.js';
import { anyHistoryCases, severalLimitsCases } from './any-history.js';
import { ALGORITHMS, type Case, type MakeStore, Stage } from './stage.js';
import { oneLimitCases } from './one-limit.js';

/** The functions of a test runner that define a group of tests and a test. Jest, Vitest, Mocha and `node:test` share this form. */
export interface TestRunner {
  /** Defines a group. */
  readonly describe: (name: string, define: () => void) => unknown;
  /** Defines a test. Jest and Vitest use the timeout, others ignore it. */
  readonly it: (name: string, run: () => Promise<void>, timeoutMs?: number) => unknown;
}

/** Options of `storeConformance`. */
export interface StoreConformanceOptions extends Partial<TestRunner> {
  /**
   * The `describe` of the test runner.
   * @default the global one
   */
  readonly describe?: TestRunner['describe'];
  /**
   * The `it` of the test runner.
   * @default the global one
   */
  readonly it?: TestRunner['it'];
  /**
   * The algorithms that the store supports. It should reject all others.
   * @default all algorithms that can count for several instances
   */
  readonly algorithms?: readonly AlgorithmName[];
  /**
   * The name of the group of tests.
   * @default 'a store'
   */
  readonly name?: string;
}

/** The maximum time of a test, for stores that are far away. */
const TIMEOUT_MS = 60_000;

/**
 * Defines the tests that every store has to pass. Call it where you define tests. Each test creates a new store and closes it. The tests
 * compare its decisions with those of the store in memory: for each algorithm, for one limit and several, after any history of checks,
 * refunds, blocks and resets, and with many concurrent checks.
 *
 * Throws `RateLimitConfigError` if there is no test runner or an algorithm is unknown.
 *
 * @param make creates a store. If the store uses the `clock` that it gets, it is tested without waiting
 * @param options the algorithms of the store; and the test runner, if `describe` and `it` aren't globals
 * @example
 * storeConformance(({ clock }) => new MyStore({ clock }));
 */
export function storeConformance(make: MakeStore, options: StoreConformanceOptions = {}): void {
  const { algorithms = ALGORITHMS, name = 'a store' } = options;
  const runner = runnerOf(options);
  const unknown = algorithms.find((algo) => !ALGORITHMS.includes(algo));
  if (unknown !== undefined || algorithms.length === 0) {
    throw new RateLimitConfigError(ownStoreMessages.unknownAlgorithm(unknown, ALGORITHMS));
  }
  runner.describe(name, () => {
    for (const each of casesOf(algorithms)) runner.it(each.name, () => run(each, make, algorithms[0]!), TIMEOUT_MS);
  });
}

function casesOf(algorithms: readonly AlgorithmName[]): Case[] {
  const pairs = algorithms.map((algo, index) => [algo, algorithms[(index + 1) % algorithms.length]!] as const);
  return [
    ...algorithms.flatMap((algo) => oneLimitCases(algo, algorithms)),
    ...pairs.flatMap(([algo, other]) => severalLimitsCases(algo, other)),
    ...anyHistoryCases(algorithms),
  ];
}

async function run(test: Case, make: MakeStore, algo: AlgorithmName): Promise<void> {
  const stage = await Stage.of(make, algo);
  try {
    await test.run(stage);
  } finally {
    await stage.close();
  }
}

function runnerOf(options: Partial<TestRunner>): TestRunner {
  const globals = globalThis as Partial<TestRunner>;
  const describe = options.describe ?? globals.describe;
  const it = options.it ?? globals.it;
  if (typeof describe !== 'function' || typeof it !== 'function') {
    throw new RateLimitConfigError(ownStoreMessages.noRunner());
  }
  return { describe, it };
}
