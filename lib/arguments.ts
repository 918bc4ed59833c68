import { RateLimitArgumentError } from './errors/errors.js';
import { messages } from './errors/messages.js';

/** Refuses a cost that is no whole number of units. */
export function assertCost(cost: unknown): asserts cost is number {
  if (!isWhole(cost)) throw new RateLimitArgumentError(messages.wrongCost(cost));
}

/** Refuses a key that names nobody. */
export function assertKey(key: unknown): asserts key is string {
  if (typeof key !== 'string' || key === '') throw new RateLimitArgumentError(messages.wrongKey(key));
}

/** Refuses a number of windows that is none. */
export function assertHistory(windows: unknown): asserts windows is number {
  if (!isWhole(windows)) throw new RateLimitArgumentError(messages.wrongHistory(windows));
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
