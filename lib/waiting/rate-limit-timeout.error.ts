import type { Decision } from '../stores/store.js';

/** The units that were waited for cannot be had in time. */
export class RateLimitTimeoutError extends Error {
  override readonly name = 'RateLimitTimeoutError';

  /** @param decision the last answer of the limit, if there was one in time: `retryAfterMs` says how long it would have taken */
  constructor(
    message: string,
    readonly decision?: Decision,
  ) {
    super(message);
  }
}
