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

/** Refuses what is no priority. */
export function assertPriority(value: unknown): asserts value is Priority {
  if (!isPriority(value)) throw new RateLimitArgumentError(priorityMessages.wrongPriority(value, PRIORITIES));
}
