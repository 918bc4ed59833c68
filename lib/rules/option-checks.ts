import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { isPriority, PRIORITIES } from '../limits/priority.js';

/** What a structured field's String can hold, since the name goes into the headers. */
const NAME = /^[\x20-\x7e]{1,128}$/;

/** Refuses an option that was given and is not right. */
export function check(
  location: string,
  option: string,
  got: unknown,
  wants: string,
  right: (value: unknown) => boolean,
): void {
  if (got !== undefined && !right(got))
    throw new RateLimitConfigError(messages.wrongOption(location, option, got, wants));
}

export const isName = (value: unknown) => typeof value === 'string' && NAME.test(value);
export const isCount = (value: unknown) =>
  isFunction(value) || ['all', 'failed', 'succeeded'].includes(value as string);
export const isFunction = (value: unknown) => typeof value === 'function';
export const PRIORITY_WANTS = `one of ${PRIORITIES.join(', ')}, or a function of the context`;
export const isPriorityOption = (value: unknown) => isPriority(value) || isFunction(value);
export const isMessage = (value: unknown) => typeof value === 'string' || isFunction(value);
export const isShare = (value: unknown) => typeof value === 'number' && value > 0 && value <= 1;
