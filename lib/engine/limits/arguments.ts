import { type Duration, milliseconds } from '../options/values.js';
import { argumentError, RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { priorityMessages } from '../errors/messages/calls.js';

/** Returns true if a value is a whole number of units; 0 is allowed. */
export function isCost(value: unknown): value is number {
  return value === 0 || isWhole(value);
}

/** Throws unless a cost is a whole number of units. */
export function assertCost(cost: unknown): asserts cost is number {
  if (!isCost(cost)) throw argumentError('SLUICE_INVALID_COST', messages.wrongCost(cost));
}

/** Throws for an empty key, and for one that isn't a string. */
export function assertKey(key: unknown): asserts key is string {
  if (typeof key !== 'string' || key === '') throw argumentError('SLUICE_INVALID_KEY', messages.wrongKey(key));
}

/** Throws for an invalid number of units. */
export function assertUnits(units: unknown): asserts units is number {
  if (!isWhole(units)) throw argumentError('SLUICE_INVALID_COST', messages.wrongUnits(units));
}

/** Throws unless an actual cost is a whole number of units; 0 is allowed. */
export function assertActual(units: unknown): asserts units is number {
  if (!isCost(units)) throw argumentError('SLUICE_INVALID_COST', messages.wrongActual(units));
}

/** Reads a duration into milliseconds; throws if it isn't one. */
export function toMs(option: string, value: Duration): number {
  const ms = milliseconds(value);
  if (ms === undefined) throw argumentError('SLUICE_INVALID_DURATION', messages.wrongDuration(option, value));
  return ms;
}

/** Throws unless the value is an `AbortSignal`. */
export function assertSignal(signal: unknown): asserts signal is AbortSignal | undefined {
  if (signal === undefined) return;
  const { addEventListener } = (signal ?? {}) as { addEventListener?: unknown };
  if (typeof addEventListener !== 'function') throw new RateLimitArgumentError(messages.wrongSignal(signal));
}

/** Throws for an invalid number of windows. */
export function assertHistory(windows: unknown): asserts windows is number {
  if (!isWhole(windows)) throw new RateLimitArgumentError(messages.wrongHistory(windows));
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

/** The importance of a request. */
export type Priority = 'critical' | 'default' | 'sheddable';

/** All priorities, the most important first. */
export const PRIORITIES: readonly Priority[] = ['critical', 'default', 'sheddable'];

/** The priority of a request that sets none. */
export const DEFAULT_PRIORITY: Priority = 'default';

/** The least important of several priorities; `undefined` means the default. */
export function leastImportant(priorities: readonly (Priority | undefined)[]): Priority | undefined {
  const rank = (priority: Priority = DEFAULT_PRIORITY) => PRIORITIES.indexOf(priority);
  return priorities.reduce((least, each) => (rank(each) > rank(least) ? each : least));
}

/** Throws unless the value is a priority. */
export function assertPriority(value: unknown): asserts value is Priority {
  if (PRIORITIES.includes(value as Priority)) return;
  throw new RateLimitArgumentError(priorityMessages.wrongPriority(value, PRIORITIES));
}
