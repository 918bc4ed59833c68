import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';

/** Wraps an error of a connection in a `RateLimitStoreError`. */
export function asStoreError(error: unknown): RateLimitStoreError {
  if (error instanceof RateLimitStoreError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new RateLimitStoreError(messages.storeFailed(reason), { cause: error });
}
