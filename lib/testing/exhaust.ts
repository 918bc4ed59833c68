import type { Limiter } from '../limiter/limiter.js';
import type { LeasedDecision } from '../limiter/lease.js';
import type { OfTenant, WithinOptions } from '../limits/consume-options.js';

/**
 * Takes all that is left for a key, so that the next call or request is refused. For a route with a defined limit the key is
 * the identity, such as `ip:127.0.0.1` or `user:42`. Where tenants share units, all that one of them can take. Rejects with
 * `RateLimitArgumentError` if the key is wrong.
 *
 * @param limiter the limit
 * @param key the key of the counter
 * @param options the tenant, where tenants share units; the keys of what the limit is within, if it is within others: then of the level that has the least left
 * @returns what took the rest, with the `lease` of a `concurrency` limit; or a refusal if nothing was left
 */
export async function exhaust(
  limiter: Limiter,
  key: string,
  options: OfTenant & WithinOptions = {},
): Promise<LeasedDecision> {
  const decision = await limiter.peek(key, { ...options, cost: 1 });
  // What is left may be there within its own rate alone.
  for (let cost = decision.remaining; cost > 0; cost = Math.floor(cost / 2)) {
    const taken = await limiter.consume(key, { ...options, cost });
    if (taken.allowed || options.within === undefined) return taken;
  }
  return decision;
}
