import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { Feature } from '../feature.js';
import { sharedBy, type ShareParameters, type Tenant } from './fair-share.js';
import { shareMessages } from './messages.js';
import type { SharedLimitOptions } from './options.js';
import { tenantsNow } from './tenants-now.js';
import { tenantsOf } from './tenant-weights.js';
import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import { wholeShare } from '../../../engine/algorithms/share.js';
import type { FeaturedLimit, LimitFeature, Versions } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/objects.js';
import { SHARE_SLICES } from './tenant-record.js';

/** The trait of requests to a shared limit. */
interface ByTenant {
  readonly tenant?: Tenant | undefined;
}

/** How units are shared among tenants. */
interface ShareTerms {
  /** The share of the quota that each active tenant may always use; 0 for none. */
  readonly floor: number;
}

/** The units of one limit that tenants share. */
class LimitShares extends Bare implements LimitFeature {
  readonly name = 'shares';
  /** Units that one tenant can't have may be available to another. */
  readonly forgetsRefusals = true;
  readonly variant: Algorithm;
  readonly versions: Versions;
  private readonly algorithm: Algorithm;

  constructor(
    { name, algorithm }: FeaturedLimit,
    private readonly terms: ShareTerms,
  ) {
    super();
    this.algorithm = algorithm;
    this.variant = sharedBy(algorithm);
    this.versions = {
      idOf: ({ tenant }: ByTenant) => tenant && `${tenant.weight} ${tenant.id}`,
      make: (parameters, { tenant }: ByTenant) => ({
        parameters: { ...parameters, tenant } as Parameters,
        metBy: { tenant },
        line: tenant!.id,
      }),
      notListed: (location) => shareMessages.noTenantHere(location, name),
      notReservable: () => shareMessages.notReservable(name),
    };
  }

  parameters(declared: Parameters): ShareParameters {
    const { units, span } = this.algorithm.sharing!.terms(declared);
    const length = Math.max(1, Math.ceil(span / (SHARE_SLICES + 1)));
    return { ...declared, shareLength: length, shareUnits: units, floor: wholeShare(units, this.terms.floor) };
  }

  ofPart(): ShareTerms {
    return this.terms;
  }
}

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
        if (name === undefined)
          throw new RateLimitArgumentError(shareMessages.noTenant(limit.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
        return { tenant: tenants.tenant(name, limit.name) };
      },
      shown: ({ tenant }: ByTenant) => tenant && { tenant: tenant.id, weight: tenant.weight },
    };
  },
  // The tenants of limits below it would be unknown.
  childless: 'share',
};
