import type { Algorithm, Parameters } from '../../../engine/algorithms/algorithm.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { object, timeUpTo, whole } from '../../../engine/options/kinds.js';
import type { OptionRows } from '../../../engine/options/option-row.js';
import { type Duration, microseconds } from '../../../engine/options/values.js';
import { wrongInput } from '../../../engine/errors/wording.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { type FeaturedLimit, FirstUse, type LimitFeature } from '../../../engine/limits/limit-feature.js';
import { Bare } from '../../../engine/util/objects.js';

/** The messages of limits with `prefetch`. */
const prefetchMessages = {
  tooLong: (location: string, ttl: unknown) =>
    wrongInput(
      `${location}.prefetch.ttl`,
      "a time in which less than the quota is refilled, and no refill 'intervally'",
      ttl,
    ),
} as const;

/** How many units an instance takes in one call, and how long it keeps them. */
export interface PrefetchOptions {
  /** The maximum number of units to take in one call: a whole number >= 1. */
  units: number;
  /**
   * How long unused units are kept before they are returned: milliseconds or a duration such as `'100ms'`, at most 1 minute.
   */
  ttl: Duration;
}

/** The `prefetch` option of limits. */
export interface PrefetchLimitOptions {
  /**
   * Lets an instance take several units of a busy counter in one call to Redis and decide in process (`source: 'prefetch'`). This never
   * allows more than without `prefetch`, but it may allow less while other instances hold unused units. The limit is a little stricter:
   * sliding windows are longer by `ttl`, and bursts are smaller by the units that come back during `ttl`. Not for `budget`, `concurrency`,
   * `leaky-bucket`, refill `'intervally'`, nor with `blockFor` or scope `'instance'`.
   * @default each check calls Redis
   */
  prefetch?: PrefetchOptions | undefined;
}

/** The terms by which an instance prefetches units. */
export interface PrefetchTerms {
  /** The maximum number of units to take in one call. */
  readonly units: number;
  /** How long they can be used, in microseconds. */
  readonly ttl: number;
}

export const prefetchOptions = {
  prefetch: {
    kind: object("{ units, ttl } such as { units: 100, ttl: '100ms' }", {
      units: { kind: whole(), text: 'Maximum number of units to take in one call.', required: true },
      ttl: { kind: timeUpTo(60_000, '1 minute'), text: 'How long these units can be used.', required: true },
    }),
    text: 'Lets an instance take several units in one call to Redis, and decide in process.',
    usual: 'none',
    for: ({ prefetch }) => prefetch !== undefined,
    // While a key is blocked, an instance with units would still allow requests. In process, there is no store to prefetch from.
    excludes: [
      'blockFor',
      { option: 'scope', value: 'instance' },
      'warmUp',
      'rollover',
      'credits',
      { option: 'anchor', asFunction: true },
    ],
  },
} as const satisfies OptionRows;

/** The terms of a validated `prefetch`. */
export function prefetchTerms({ prefetch }: PrefetchLimitOptions): PrefetchTerms | undefined {
  return prefetch && { units: prefetch.units, ttl: microseconds(prefetch.ttl) };
}

/** Stricter parameters that allow units to be used a little later than they were charged. Throws `RateLimitConfigError`. */
export function stricterParameters(
  algorithm: Algorithm,
  declared: Parameters,
  { ttl }: PrefetchTerms,
  location: string,
): Parameters {
  const parameters = algorithm.prefetch!.parameters(declared, ttl);
  if (parameters !== undefined) return parameters;
  throw new RateLimitConfigError(prefetchMessages.tooLong(location, ttl / 1000));
}

/** Throws if units could be used for too long. */
export function checkPrefetch(
  options: PrefetchLimitOptions,
  limit: { readonly algorithm: Algorithm; readonly parameters: Parameters } | undefined,
  location: string,
): void {
  const terms = prefetchTerms(options);
  if (terms !== undefined && limit !== undefined)
    stricterParameters(limit.algorithm, limit.parameters, terms, location);
}

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
