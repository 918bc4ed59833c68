import type { Decision } from '../limits/decision.js';

/** The units that were waited for cannot be had in time. */
export class RateLimitTimeoutError extends Error {
  /** `'RateLimitTimeoutError'`. */
  override readonly name = 'RateLimitTimeoutError';

  /**
   * Made by `acquire` and `hold`.
   *
   * @param message says how long was waited for which limit
   * @param decision the last answer of the limit, if there was one in time: `retryAfterMs` says how long it would have taken
   */
  constructor(
    message: string,
    readonly decision?: Decision,
  ) {
    super(message);
  }
}
