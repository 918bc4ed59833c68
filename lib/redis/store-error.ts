import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { reasonOf } from '../util/reason-of.js';

/** Wraps an error of a connection in a `RateLimitStoreError`. */
export function asStoreError(error: unknown): RateLimitStoreError {
  if (error instanceof RateLimitStoreError) return error;
  const reason = reasonOf(error);
  return new RateLimitStoreError(messages.storeFailed(reason), { cause: error });
}
