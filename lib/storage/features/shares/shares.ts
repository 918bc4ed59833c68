import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { Feature } from '../feature.js';
import type { ShareParameters } from './fair-share.js';
import { type ByTenant, LimitShares, type ShareTerms } from './limit-shares.js';
import { shareMessages } from './messages.js';
import type { SharedLimitOptions } from './options.js';
import { tenantsNow } from './tenants-now.js';
import { tenantsOf } from './tenant-weights.js';

/** Shares the units of a limit fairly among tenants. */
export const shares: Feature<ShareTerms> = {
  terms({ share }: SharedLimitOptions, location) {
    const tenants = tenantsOf(share, location);
    return tenants && { floor: tenants.floor };
  },
  of: (limit, terms) => new LimitShares(limit, terms),
  shown: ({ features, parameters }) =>
    features?.some((feature) => feature instanceof LimitShares) === true
      ? { floor: (parameters as ShareParameters).floor }
      : undefined,
  tenants: (store, counter) =>
    counter.limit.features?.some((feature) => feature instanceof LimitShares) === true
      ? tenantsNow(store, counter)
      : undefined,
  trait({ share }: SharedLimitOptions, location, bind) {
    const tenants = tenantsOf(share, location);
    if (share === undefined || tenants === undefined) return undefined;
    return {
      option: 'share',
      calls: 'share.weight',
      by: bind(share.by, `${location}.share`, 'by'),
      metBy(name, limit) {
        if (name === undefined) throw new RateLimitArgumentError(shareMessages.noTenant(limit.name));
        return { tenant: tenants.tenant(name, limit.name) };
      },
      shown: ({ tenant }: ByTenant) => tenant && { tenant: tenant.id, weight: tenant.weight },
    };
  },
  // Nothing says whose units those of a limit within it are.
  childless: 'share',
};
