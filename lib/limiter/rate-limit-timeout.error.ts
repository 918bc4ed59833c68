import type { Decision } from '../limits/decision.js';

/** The units of a waiting call do not come in time. */
export class RateLimitTimeoutError extends Error {
  /** `'RateLimitTimeoutError'`. */
  override readonly name = 'RateLimitTimeoutError';

  /**
   * Made by `acquire` and `hold`.
   *
   * @param message names the limit and the timeout
   * @param decision the last refusal, if there was one in time: `retryAfterMs` is the wait that was left
   */
  constructor(
    message: string,
    readonly decision?: Decision,
  ) {
    super(message);
  }
}
