import { RateLimitArgumentError } from '../errors/errors.js';
import { priorityMessages } from '../errors/messages/priority.js';

/** How important a request is. */
export type Priority = 'critical' | 'default' | 'sheddable';

/** The most important first. */
export const PRIORITIES: readonly Priority[] = ['critical', 'default', 'sheddable'];

/** The priority of a request that was given none. */
export const DEFAULT_PRIORITY: Priority = 'default';

export function isPriority(value: unknown): value is Priority {
  return PRIORITIES.includes(value as Priority);
}

/** The least important of several, of which `undefined` is the default. */
export function leastImportant(priorities: readonly (Priority | undefined)[]): Priority | undefined {
  const rank = (priority: Priority = DEFAULT_PRIORITY) => PRIORITIES.indexOf(priority);
  return priorities.reduce((least, each) => (rank(each) > rank(least) ? each : least));
}

/** Refuses what is no priority. */
export function assertPriority(value: unknown): asserts value is Priority {
  if (!isPriority(value)) throw new RateLimitArgumentError(priorityMessages.wrongPriority(value, PRIORITIES));
}
