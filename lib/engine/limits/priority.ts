import { RateLimitArgumentError } from '../errors/errors.js';
import { priorityMessages } from '../errors/messages/calls.js';

/** The importance of a request. */
export type Priority = 'critical' | 'default' | 'sheddable';

/** All priorities, the most important first. */
export const PRIORITIES: readonly Priority[] = ['critical', 'default', 'sheddable'];

/** The priority of a request that sets none. */
export const DEFAULT_PRIORITY: Priority = 'default';

export function isPriority(value: unknown): value is Priority {
  return PRIORITIES.includes(value as Priority);
}

/** The least important of several priorities; `undefined` means the default. */
export function leastImportant(priorities: readonly (Priority | undefined)[]): Priority | undefined {
  const rank = (priority: Priority = DEFAULT_PRIORITY) => PRIORITIES.indexOf(priority);
  return priorities.reduce((least, each) => (rank(each) > rank(least) ? each : least));
}

/** Throws unless the value is a priority. */
export function assertPriority(value: unknown): asserts value is Priority {
  if (!isPriority(value)) throw new RateLimitArgumentError(priorityMessages.wrongPriority(value, PRIORITIES));
}
