import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';

/**
 * Settles as the promise does, or rejects when the time is over. A process that was busy for longer than that first reads
 * what its sockets hold: a reply that is already there wins.
 */
export function withDeadline<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => setImmediate(() => reject(new RateLimitStoreError(messages.storeTimeout(Math.round(timeoutMs))))),
      Math.max(0, timeoutMs),
    );
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
