import type { RateLimitErrorCode, RateLimitErrorOptions } from '../../engine/errors/errors.js';

/** Thrown if the maximum number of calls, the module's `maxWaiters`, already wait for units. */
export class RateLimitWaitersError extends Error {
  /** `'RateLimitWaitersError'`. */
  override readonly name = 'RateLimitWaitersError';
  /** The error's code: `'SLUICE_TOO_MANY_WAITERS'` by default. */
  readonly code: RateLimitErrorCode;

  /** Thrown by `acquire` and `hold`. */
  constructor(message?: string, options?: RateLimitErrorOptions) {
    super(message, options);
    this.code = options?.code ?? 'SLUICE_TOO_MANY_WAITERS';
  }
}
