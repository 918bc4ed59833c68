import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import { wholeShare } from '../../../engine/algorithms/share.js';
import type { FeaturedLimit, LimitFeature, Versions } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/bare.js';
import { sharedBy, type ShareParameters, type Tenant } from './fair-share.js';
import { shareMessages } from './messages.js';
import { SHARE_SLICES } from './tenant-record.js';

/** What requests say of themselves that share a limit. */
export interface ByTenant {
  readonly tenant?: Tenant | undefined;
}

/** How units are shared among tenants. */
export interface ShareTerms {
  /** The share of the quota that each active tenant may use at least; 0 for none. */
  readonly floor: number;
}

/** The units of one limit that tenants share. */
export class LimitShares extends Bare implements LimitFeature {
  readonly name = 'shares';
  /** What one tenant is refused, another one may have. */
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
