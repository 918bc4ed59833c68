/** As many calls wait for units as may: the option `maxWaiters` of the module. */
export class RateLimitWaitersError extends Error {
  /** `'RateLimitWaitersError'`. */
  override readonly name = 'RateLimitWaitersError';
}
