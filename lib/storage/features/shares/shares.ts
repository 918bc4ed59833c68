import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { Script } from '../../redis/script.js';
import { type FeatureReading, read, type ReadableStore, type RedisParts } from '../../stores/feature-reading.js';
import { keyOf } from '../../stores/redis/keys.js';
import type { Feature, TenantNow, TenantsNow } from '../feature.js';
import { sharedBy, type ShareParameters, type Tenant } from './fair-share.js';
import { ACTIVE_SLICES, later, partOf, SHARE_SLICES, sum } from './tenant-record.js';
import { TENANTS_SCRIPT } from './tenants-script.generated.js';
import { argumentError } from '../../../engine/errors/errors.js';
import { shareMessages } from './messages.js';
import type { SharedLimitOptions } from './options.js';
import { tenantsOf } from './tenant-weights.js';
import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import { wholeShare } from '../../../engine/algorithms/share.js';
import type { FeaturedLimit, LimitFeature, Versions } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/objects.js';

const MOST = 8;
const AGES = SHARE_SLICES + 1;
const TIMEOUT_MS = 2000;

/** A tenant in the script's reply: its expected use in total, then the units that it used in each slice. */
type Stored = readonly [id: string, asked: number, weight: number, expected: number, ...used: number[]];

const scripts = new WeakMap<object, Script>();

/** Reads the tenants of a counter; `undefined` without recent requests, or if the store can't list them. Only Redis can. */
export function tenantsNow(store: ReadableStore, counter: Counter): Promise<TenantsNow | undefined> {
  const reading: FeatureReading<Promise<TenantsNow | undefined>> = {
    name: 'tenants',
    counter,
    inMemory: () => Promise.resolve(undefined),
    onRedis: (parts) => readFrom(parts, counter),
    elsewhere: () => Promise.resolve(undefined),
  };
  return read(store, counter.limit, reading);
}

async function readFrom(parts: RedisParts, counter: Counter): Promise<TenantsNow | undefined> {
  const { client, prefix } = parts;
  let script = scripts.get(client);
  if (script === undefined) scripts.set(client, (script = new Script(client, TENANTS_SCRIPT)));
  const shares = `${keyOf(prefix, counter)}:shares`;
  const reply = await parts.guarded(() => script.run([shares], [String(MOST)], TIMEOUT_MS));
  if (typeof reply !== 'string') return undefined;
  const [sums, tenants] = JSON.parse(reply) as [number[], Stored[]];
  return standings(counter.limit.parameters as ShareParameters, sums, tenants, parts.now());
}

function standings(
  terms: ShareParameters,
  [, length = 0, newest = 0, ...counts]: readonly number[],
  tenants: readonly Stored[],
  now: number,
): TenantsNow | undefined {
  const { shareLength, shareUnits, floor } = terms;
  // The span has changed, and there has been no request since.
  if (length !== shareLength) return undefined;
  const current = Math.max(newest, Math.floor(now / length));
  const weights = sum(later(counts.slice(0, ACTIVE_SLICES), current - newest), 0, ACTIVE_SLICES);
  const known = tenants.flatMap(([id, asked, weight, , ...used]): TenantNow[] => {
    if (current - asked >= ACTIVE_SLICES) return [];
    const own = later(used, current - asked);
    return [{ id, weight, part: partOf(terms, weight, Math.max(weight, weights)), used: sum(own, 0, own.length) }];
  });
  if (known.length === 0) return undefined;
  const spanMs = (length * AGES) / 1000;
  return { tenants: known.toSorted((one, other) => other.used - one.used), weights, units: shareUnits, floor, spanMs };
}

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

function isShared({ features }: CompiledLimit): boolean {
  return features?.some((feature) => feature instanceof LimitShares) === true;
}

/** Shares the units of a limit fairly among tenants. */
export const shares: Feature<ShareTerms> = {
  terms({ share }: SharedLimitOptions, location) {
    const tenants = tenantsOf(share, location);
    return tenants && { floor: tenants.floor };
  },
  of: (limit, terms) => new LimitShares(limit, terms),
  shown: (limit) => (isShared(limit) ? { floor: (limit.parameters as ShareParameters).floor } : undefined),
  tenants: (store, counter) => (isShared(counter.limit) ? tenantsNow(store, counter) : undefined),
  trait({ share }: SharedLimitOptions, location, bind) {
    const tenants = tenantsOf(share, location);
    if (share === undefined || tenants === undefined) return undefined;
    return {
      option: 'share',
      calls: 'share.weight',
      by: bind(share.by, `${location}.share`, 'by'),
      metBy(name, limit) {
        if (name === undefined) throw argumentError('SLUICE_UNSUPPORTED_CALL', shareMessages.noTenant(limit.name));
        return { tenant: tenants.tenant(name, limit.name) };
      },
      shown: ({ tenant }: ByTenant) => tenant && { tenant: tenant.id, weight: tenant.weight },
    };
  },
  // The tenants of limits below it would be unknown.
  childless: 'share',
};
