import type { Tenant } from '../algorithms/fair-share.js';
import { tenantWeight } from '../config/feature-options.js';
import type { ShareOptions } from '../config/limit-definition.js';
import { RateLimitArgumentError, RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { shareMessages } from '../errors/messages/share.js';
import { identityOfValue } from '../key-resolvers/index.js';
import { plainIdentity } from '../limits/identity.js';
import { isPromise } from '../util/awaitable.js';

/** Stands for all tenants that count together; no tenant's own name contains a star. */
const UNLISTED: Tenant = { id: '*', weight: 1 };

/** A limit's `share` after reading, without its key. */
export interface SharePlan {
  readonly floor: number;
  /** The tenant with a name. Throws `RateLimitArgumentError` for a wrong weight or an empty name. */
  tenant(name: unknown, limit: string): Tenant;
}

/** Reads a `share` whose values were checked. Throws `RateLimitConfigError`. */
export function shareTerms(share: ShareOptions, location: string): SharePlan {
  const { by, weight, unlisted = 'each', floor = 0 } = share;
  const refuse = (option: string, got: unknown, wants: string): never => {
    throw new RateLimitConfigError(messages.wrongOption(`${location}.share`, option, got, wants));
  };
  if (unlisted === 'together' && typeof weight !== 'object')
    refuse('unlisted', unlisted, shareMessages.unlistedWants());
  const weights = typeof weight === 'object' ? byIdentity(weight, by, refuse) : undefined;
  const tenants = (weights?.size ?? 0) + (unlisted === 'together' ? 1 : 0);
  if (floor * tenants > 1) refuse('floor', floor, shareMessages.floorsTooMany(tenants));
  return {
    floor,
    tenant(name, limit) {
      if (typeof name !== 'string' || name === '') throw new RateLimitArgumentError(shareMessages.wrongTenant(name));
      if (unlisted === 'together' && weights?.has(name) === false) return UNLISTED;
      const own: unknown = typeof weight === 'function' ? weight(name) : (weights?.get(name) ?? 1);
      if (!tenantWeight.isRight(own)) throw notAWeight(limit, name, own);
      return { id: plainIdentity(name), weight: own as number };
    },
  };
}

/** The weights by the identities of the tenants. */
function byIdentity(
  weight: Readonly<Record<string, number>>,
  by: unknown,
  refuse: (option: string, got: unknown, wants: string) => never,
): ReadonlyMap<string, number> {
  const named = Object.entries(weight).map(([name, own]) => [identityOfValue(by, name), own, name] as const);
  const never = named.flatMap(([identity, , name]) => (identity === undefined ? [name] : []));
  if (never.length > 0) refuse('weight', weight, shareMessages.neverFound(never, by as string));
  return new Map(named.map(([identity, own]) => [identity!, own]));
}

function notAWeight(limit: string, tenant: string, got: unknown): RateLimitArgumentError {
  // The rejection of a promise does not matter: a promise is not a weight in any case.
  if (isPromise(got)) void Promise.resolve(got).catch(() => undefined);
  return new RateLimitArgumentError(shareMessages.wrongWeight(limit, tenant, got));
}
