import type { Limiter } from '../limiter/limiter.js';
import type { LeasedDecision } from '../limiter/lease.js';
import type { OfTenant } from '../limits/consume-options.js';

/**
 * Takes all that is left for a key, so that the next call or request is refused. For a route with a defined limit the key is
 * the identity, such as `ip:127.0.0.1` or `user:42`. Where tenants share units, all that one of them can take. Rejects with `RateLimitArgumentError` if the key is wrong.
 *
 * @returns what took the rest, with the `lease` of a `concurrency` limit; or a refusal if nothing was left
 */
export async function exhaust(limiter: Limiter, key: string, of: OfTenant = {}): Promise<LeasedDecision> {
  const decision = await limiter.peek(key, { cost: 1, ...of });
  return decision.remaining === 0 ? decision : limiter.consume(key, { cost: decision.remaining, ...of });
}
