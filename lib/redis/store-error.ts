import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';

/** Makes a `RateLimitStoreError` of whatever a connection failed with. */
export function asStoreError(error: unknown): RateLimitStoreError {
  if (error instanceof RateLimitStoreError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new RateLimitStoreError(messages.storeFailed(reason), { cause: error });
}
