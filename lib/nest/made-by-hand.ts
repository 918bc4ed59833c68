import { RateLimitConfigError } from '../engine/errors/errors.js';
import { messages } from '../engine/errors/messages/general.js';

/** Refuses a guard or a middleware that code makes without what Nest would give it. Throws `RateLimitConfigError`. */
export function refuseByHand(type: 'RateLimitGuard' | 'RateLimitMiddleware', limiter: unknown): void {
  if (limiter === undefined) throw new RateLimitConfigError(messages.madeByHand(type));
}
