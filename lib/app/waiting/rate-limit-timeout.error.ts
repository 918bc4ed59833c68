import type { Decision } from '../../engine/limits/decision.js';

/** The units that a call waits for do not come in time. */
export class RateLimitTimeoutError extends Error {
  /** `'RateLimitTimeoutError'`. */
  override readonly name = 'RateLimitTimeoutError';

  /**
   * Thrown by `acquire` and `hold`.
   *
   * @param message names the limit and the timeout
   * @param decision the last refusal, if there was one in time; its `retryAfterMs` is the wait that was left
   */
  constructor(
    message: string,
    readonly decision?: Decision,
  ) {
    super(message);
  }
}
