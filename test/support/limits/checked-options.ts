import { checkLimit, optionsOf } from '../../../lib/app/config/limit-options.js';
import { type AlgorithmName, algorithms } from '../../../lib/engine/algorithms/index.js';

/** The algorithms that a limit may name. */
export const ALGORITHMS = algorithms.names as readonly AlgorithmName[];

/** The options that a limit of an algorithm may have. */
export function optionNamesOf(algo: AlgorithmName): string[] {
  return Object.keys(optionsOf(algorithms.get(algo)!)).toSorted();
}

/** Checks all options of a limit, also those that say more than how it counts, as for a limit of an app. Throws `RateLimitConfigError`. */
export function checkOptions(options: object): void {
  checkLimit(options, 'test');
}
