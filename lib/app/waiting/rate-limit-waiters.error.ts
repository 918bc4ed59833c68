/** The module's `maxWaiters` calls are already waiting for units. */
export class RateLimitWaitersError extends Error {
  /** `'RateLimitWaitersError'`. */
  override readonly name = 'RateLimitWaitersError';
}
