import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { type FeaturedLimit, FirstUse, type LimitFeature } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/objects.js';
import { type PrefetchTerms, stricterParameters } from './terms.js';

/** The first limit that prefetches units. */
export const prefetchUse = new FirstUse();

/** The prefetched units of one limit. */
export class LimitPrefetch extends Bare implements LimitFeature {
  readonly name = 'prefetch';
  /** Prefetched units may be used while the counter is empty. */
  readonly forgetsRefusals = true;
  /** Only the stack with Redis has the layer that prefetches. */
  readonly onlyWithRedis = true;
  private readonly algorithm: Algorithm;

  constructor(
    { algorithm }: FeaturedLimit,
    readonly terms: PrefetchTerms,
    private readonly location: string,
  ) {
    super();
    this.algorithm = algorithm;
    prefetchUse.note();
  }

  /** Units may be used a little later than they were charged. */
  parameters(declared: Parameters): Parameters {
    return stricterParameters(this.algorithm, declared, this.terms, this.location);
  }
}

/** The prefetching of a limit; `undefined` if it has none. */
export function limitPrefetchOf({ features }: CompiledLimit): LimitPrefetch | undefined {
  if (features === undefined) return undefined;
  for (let i = 0; i < features.length; i++) {
    const feature = features[i];
    if (feature instanceof LimitPrefetch) return feature;
  }
  return undefined;
}
