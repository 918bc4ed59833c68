import type { RateLimitErrorCode, RateLimitErrorOptions } from '../../engine/errors/errors.js';
import type { Decision } from '../../engine/limits/decision.js';

/** Thrown if the units that a call waits for aren't available in time. */
export class RateLimitTimeoutError extends Error {
  /** `'RateLimitTimeoutError'`. */
  override readonly name = 'RateLimitTimeoutError';
  /** The error's code: `'SLUICE_TIMEOUT'` by default. */
  readonly code: RateLimitErrorCode;

  /**
   * Thrown by `acquire` and `hold`.
   *
   * @param message names the limit and the timeout
   * @param decision the last rejection, if there was one before the timeout; its `retryAfterMs` is the remaining wait
   * @param options its code, and its cause
   */
  constructor(
    message: string,
    readonly decision?: Decision,
    options?: RateLimitErrorOptions,
  ) {
    super(message, options);
    this.code = options?.code ?? 'SLUICE_TIMEOUT';
  }
}

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
