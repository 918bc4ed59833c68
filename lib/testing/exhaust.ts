import type { Limiter } from '../app/limiter/limiter.js';
import type { LeasedDecision } from '../app/limiter/lease.js';
import type { OfTenant, WithinOptions } from '../engine/limits/consume-options.js';

/**
 * Takes all units that are left for a key, so that the next call or request is refused. For a route with a defined limit the key
 * is the identity, such as `ip:127.0.0.1` or `user:42`. If tenants share units, takes all that one of them can take. Rejects with
 * `RateLimitArgumentError` if the key is wrong.
 *
 * @param limiter the limit
 * @param key the key of the counter
 * @param options the tenant, if tenants share units; the keys of the limits that this one is within, if any: then takes what the
 * level with the least left allows
 * @returns the decision that took the rest, with the `lease` of a `concurrency` limit; or a refusal if nothing was left
 */
export async function exhaust(
  limiter: Limiter,
  key: string,
  options: OfTenant & WithinOptions = {},
): Promise<LeasedDecision> {
  const decision = await limiter.peek(key, { ...options, cost: 1 });
  // The rest may be available within its own rate only.
  for (let cost = decision.remaining; cost > 0; cost = Math.floor(cost / 2)) {
    const taken = await limiter.consume(key, { ...options, cost });
    if (taken.allowed || options.within === undefined) return taken;
  }
  return decision;
}
