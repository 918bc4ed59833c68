import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { FeaturedLimit, LimitFeature } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/objects.js';
import { FirstUse } from '../../../engine/util/first-use.js';
import { type PrefetchTerms, stricterParameters } from './terms.js';

/** The first limit that takes units in advance. */
export const prefetchUse = new FirstUse();

/** The units of one limit that instances take in advance. */
export class LimitPrefetch extends Bare implements LimitFeature {
  readonly name = 'prefetch';
  /** Units that were taken in advance may be used while the counter has none. */
  readonly forgetsRefusals = true;
  /** Only there the stack has a layer that takes them. */
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

  /** Units may be used a little after they were charged. */
  parameters(declared: Parameters): Parameters {
    return stricterParameters(this.algorithm, declared, this.terms, this.location);
  }
}

/** What a limit takes in advance; nothing if it does not. */
export function limitPrefetchOf({ features }: CompiledLimit): LimitPrefetch | undefined {
  if (features === undefined) return undefined;
  for (let i = 0; i < features.length; i++) {
    const feature = features[i];
    if (feature instanceof LimitPrefetch) return feature;
  }
  return undefined;
}
