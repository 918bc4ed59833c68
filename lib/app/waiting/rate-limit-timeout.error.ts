import type { Decision } from '../../engine/limits/decision.js';

/** Thrown if the units that a call waits for aren't available in time. */
export class RateLimitTimeoutError extends Error {
  /** `'RateLimitTimeoutError'`. */
  override readonly name = 'RateLimitTimeoutError';

  /**
   * Thrown by `acquire` and `hold`.
   *
   * @param message names the limit and the timeout
   * @param decision the last rejection, if there was one before the timeout; its `retryAfterMs` is the remaining wait
   */
  constructor(
    message: string,
    readonly decision?: Decision,
  ) {
    super(message);
  }
}
