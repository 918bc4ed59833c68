import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';

/**
 * Settles as the promise does, or rejects when the time is up. If the process was blocked for longer, its sockets are read first:
 * a reply that has already arrived wins. `leftMs` remain of `timeoutMs`, which the error names.
 */
export function withDeadline<T>(promise: Promise<T>, leftMs: number, timeoutMs = leftMs): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () =>
        setImmediate(() =>
          reject(
            new RateLimitStoreError(messages.storeTimeout(Math.round(timeoutMs)), { code: 'SLUICE_STORE_TIMEOUT' }),
          ),
        ),
      Math.max(0, leftMs),
    );
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
