import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { FeaturedLimit, FeatureTerms, LimitFeature } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/objects.js';
import { homeParameters, lifetimeOf } from './terms.js';

/** What an instance knows of the time of the home, in microseconds; 0 if nothing. */
export interface HomeTime {
  /** The latest that it can be when a call sent now is decided. */
  latest(): number;
  /** The best guess of it. */
  now(): number;
  /** A number for the name of the region that asks. */
  readonly region?: number;
}

const UNKNOWN: HomeTime = { latest: () => 0, now: () => 0 };

/** What a check of units that a region holds takes of its server, in checks of a plain counter. */
const WORK = 2;

/** A limit over several regions, as its regions count it: each decides by units that the home has granted it. */
export class LimitRegions extends Bare implements LimitFeature {
  readonly name = 'regions';
  /** Keys of its own: the region of the home may have its counters on the same server. */
  readonly code = 'rg';
  /** The home may grant more at any time. */
  readonly forgetsRefusals = true;
  /** One process is one region. */
  readonly onlyWithRedis = true;
  readonly withoutEstimates = true;
  readonly variant: Algorithm;
  /** For how long a region may hold units, in microseconds. */
  readonly lifetime: number;
  /** The algorithm by which the home counts. */
  readonly algorithm: Algorithm;
  /** Set by the layer of the store that asks the home. */
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

  /** The quota of a region is that of the home. */
  parameters(declared: Parameters): Parameters {
    return homeParameters(this.algorithm, declared, this.location);
  }

  /** What counts in a region: `lua/features/regions.lua`. It does so on Redis only. */
  private granted(base: Algorithm): Algorithm {
    return {
      ...base,
      script: 'fixed-window',
      scriptPrefix: 'regions+',
      notes: true,
      work: () => WORK,
      scriptParameters: () => [this.lifetime, this.time.latest(), this.time.now(), this.time.region ?? 0],
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
class LimitAtHome extends Bare implements LimitFeature {
  readonly name = 'home';
  readonly withoutEstimates = true;
  private readonly algorithm: Algorithm;

  constructor(
    { algorithm }: FeaturedLimit,
    private readonly location: string,
  ) {
    super();
    this.algorithm = algorithm;
  }

  /** Units may be used a little after they were charged. */
  parameters(declared: Parameters): Parameters {
    return homeParameters(this.algorithm, declared, this.location);
  }
}

const AT_HOME: FeatureTerms = { of: (limit, _terms, location) => new LimitAtHome(limit, location), terms: {} };

/** The limit by which the home counts. */
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

/** Whether a counter counts over several regions. */
export function isOfWorld({ limit }: Counter): boolean {
  return limitRegionsOf(limit) !== undefined;
}

/** What a limit has of regions; nothing if it counts in one. */
export function limitRegionsOf({ features }: CompiledLimit): LimitRegions | undefined {
  if (features === undefined) return undefined;
  for (let i = 0; i < features.length; i++) {
    const feature = features[i];
    if (feature instanceof LimitRegions) return feature;
  }
  return undefined;
}
