import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import { identityOfValue, plainIdentity } from '../../../engine/limits/identity.js';
import { isPromise } from '../../../engine/util/awaitable.js';
import type { Tenant } from './fair-share.js';
import { shareMessages } from './messages.js';
import { type SharedLimitOptions, type ShareOptions, tenantWeight } from './options.js';
import { wrongOption } from '../../../engine/options/check-options.js';

/** Represents all tenants that count together. No tenant's own name contains a star. */
const UNLISTED: Tenant = { id: '*', weight: 1 };

/** The tenants of a limit and their weights, from its `share`. */
export class TenantWeights {
  readonly floor: number;
  /** The weights by tenants' identities; `undefined` if tenants aren't listed. */
  private readonly listed: ReadonlyMap<string, number> | undefined;

  /** Reads a validated `share`. Throws `RateLimitConfigError`. */
  constructor(
    private readonly options: ShareOptions,
    location: string,
  ) {
    const { by, weight, unlisted, floor = 0 } = options;
    const refuse = (option: string, got: unknown, expected: string): never => {
      throw wrongOption(`${location}.share`, option, got, expected);
    };
    if (unlisted === 'together' && typeof weight !== 'object') {
      refuse('unlisted', unlisted, shareMessages.unlistedExpected());
    }
    this.floor = floor;
    this.listed = typeof weight === 'object' ? byIdentity(weight, by, refuse) : undefined;
    const tenants = (this.listed?.size ?? 0) + (unlisted === 'together' ? 1 : 0);
    if (floor * tenants > 1) refuse('floor', floor, shareMessages.floorsTooMany(tenants));
  }

  /** The tenant with a name. Throws `RateLimitArgumentError` for an invalid weight or an empty name. */
  tenant(name: unknown, limit: string): Tenant {
    if (typeof name !== 'string' || name === '') throw new RateLimitArgumentError(shareMessages.wrongTenant(name));
    const { weight, unlisted } = this.options;
    if (unlisted === 'together' && this.listed?.has(name) === false) return UNLISTED;
    const own: unknown = typeof weight === 'function' ? weight(name) : (this.listed?.get(name) ?? 1);
    if (!tenantWeight.isValid(own)) throw notAWeight(limit, name, own);
    return { id: plainIdentity(name), weight: own as number };
  }
}

/** The tenants of a limit with such a `share`; `undefined` without one. Throws `RateLimitConfigError`. */
export function tenantsOf(share: ShareOptions | undefined, location: string): TenantWeights | undefined {
  return share && new TenantWeights(share, location);
}

/** Throws `RateLimitConfigError` for weights, names and floors that contradict each other. */
export function checkShare({ share }: SharedLimitOptions, _limit: unknown, location: string): void {
  tenantsOf(share, location);
}

/** The weights by tenants' identities. */
function byIdentity(
  weight: Readonly<Record<string, number>>,
  by: unknown,
  refuse: (option: string, got: unknown, expected: string) => never,
): ReadonlyMap<string, number> {
  const named = Object.entries(weight).map(([name, own]) => [identityOfValue(by, name), own, name] as const);
  const never = named.flatMap(([identity, , name]) => (identity === undefined ? [name] : []));
  if (never.length > 0) refuse('weight', weight, shareMessages.neverFound(never, by as string));
  return new Map(named.map(([identity, own]) => [identity!, own]));
}

function notAWeight(limit: string, tenant: string, got: unknown): RateLimitArgumentError {
  // A rejection doesn't matter, since a promise isn't a valid weight in any case.
  if (isPromise(got)) void Promise.resolve(got).catch(() => undefined);
  return new RateLimitArgumentError(shareMessages.wrongWeight(limit, tenant, got));
}
