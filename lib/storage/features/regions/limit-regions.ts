import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { FeaturedLimit, FeatureTerms, LimitFeature } from '../../../engine/limits/limit-feature.js';
import { Bare, bare } from '../../../engine/util/objects.js';
import type { HomeClock } from './home-clock.js';
import { homeParameters, lifetimeOf } from './terms.js';
import { argumentError } from '../../../engine/errors/errors.js';
import type { RegionHolding } from '../../../engine/limits/key-reports.js';
import { read, type ReadableStore } from '../../stores/feature-reading.js';
import { worldMessages } from './messages.js';

type HomeTime = Pick<HomeClock, 'latest' | 'now' | 'region'>;

const UNKNOWN: HomeTime = { latest: () => 0, now: () => 0, region: 0 };

/** The load of a check of held units on the region's server, in checks of a plain counter. */
const WORK = 2;

/** A limit across several regions, as its regions count it: each region decides with the units that the home has granted it. */
export class LimitRegions extends Bare implements LimitFeature {
  readonly name = 'regions';
  /** Separate keys, since the region of the home may have its counters on the same server. */
  readonly code = 'rg';
  /** The home may grant more at any time. */
  readonly forgetsRefusals = true;
  /** One process is one region. */
  readonly onlyWithRedis = true;
  readonly withoutEstimates = true;
  readonly variant: Algorithm;
  /** For how long a region may hold units, in microseconds. */
  readonly lifetime: number;
  /** The algorithm that the home counts with. */
  readonly algorithm: Algorithm;
  /** Set by the layer of the store that calls the home. */
  time: HomeTime = UNKNOWN;

  constructor(
    { algorithm, declared }: FeaturedLimit,
    private readonly location: string,
  ) {
    super();
    this.algorithm = algorithm;
    this.lifetime = lifetimeOf(algorithm, declared);
    this.variant = this.granted(algorithm);
  }

  /** A region has the quota of the home. */
  parameters(declared: Parameters): Parameters {
    return homeParameters(this.algorithm, declared, this.location);
  }

  /** The algorithm of a region: `lua/features/regions.lua`. It runs only on Redis. */
  private granted(base: Algorithm): Algorithm {
    return {
      ...base,
      script: 'fixed-window',
      scriptPrefix: 'regions+',
      notes: true,
      work: () => WORK,
      scriptParameters: () => [this.lifetime, this.time.latest(), this.time.now(), this.time.region],
      extraKeys: undefined,
      moreKeys: undefined,
      reopen: undefined,
      reservation: undefined,
      queue: undefined,
      holds: undefined,
      varying: undefined,
      prefetch: undefined,
    } as unknown as Algorithm;
  }
}

/** The same limit at its home. */
const AT_HOME: FeatureTerms = {
  of: ({ algorithm }, _terms, location) =>
    bare<LimitFeature>({
      name: 'home',
      withoutEstimates: true,
      // Units may be used a little later than they were charged.
      parameters: (declared) => homeParameters(algorithm, declared, location),
    }),
  terms: {},
};

/** The limit that the home counts. */
export function atHome(limit: CompiledLimit): CompiledLimit {
  return limit.unmet.withFeatures([AT_HOME]);
}

const homes = new WeakMap<CompiledLimit, CompiledLimit>();

/** The same counter at home. */
export function counterAtHome({ limit, identity }: Counter): Counter {
  let home = homes.get(limit);
  if (home === undefined) homes.set(limit, (home = atHome(limit)));
  return { limit: home, identity };
}

/** Returns true if a counter counts across regions. */
export function isOfWorld({ limit }: Counter): boolean {
  return limitRegionsOf(limit) !== undefined;
}

/** The regions of a limit; `undefined` if it counts in one region. */
export function limitRegionsOf({ features }: CompiledLimit): LimitRegions | undefined {
  if (features === undefined) return undefined;
  for (let i = 0; i < features.length; i++) {
    const feature = features[i];
    if (feature instanceof LimitRegions) return feature;
  }
  return undefined;
}

/** The name of the reading. */
export const HOLDINGS = 'regions';

/** The units of a counter that each region holds. Throws `RateLimitArgumentError` for a limit that counts in one region. */
export async function holdingsOf(store: ReadableStore, counter: Counter): Promise<RegionHolding[]> {
  const { limit } = counter;
  const nowhere = (): never => {
    throw argumentError('SLUICE_UNSUPPORTED_CALL', worldMessages.oneRegion(limit.name));
  };
  if (limitRegionsOf(limit) === undefined) nowhere();
  // The layer of regions answers this, since the layers below don't know the home.
  return read<Promise<RegionHolding[]>>(store, limit, {
    name: HOLDINGS,
    counter,
    inMemory: nowhere,
    onRedis: nowhere,
    elsewhere: nowhere,
  });
}
