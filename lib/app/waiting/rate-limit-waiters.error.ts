/** Thrown if the maximum number of calls, the module's `maxWaiters`, already wait for units. */
export class RateLimitWaitersError extends Error {
  /** `'RateLimitWaitersError'`. */
  override readonly name = 'RateLimitWaitersError';
}
