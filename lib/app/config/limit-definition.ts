import type { AlgorithmName, OptionsOf } from '../../engine/algorithms/index.js';
import type { LimitKey } from '../../engine/limits/identity.js';
import type { CommonFeatureOptions, WithFeatures } from '../../storage/features/index.js';
import type { DecisionHooksOptions } from '../hooks/decision-hook.js';
import type { CommonLimitOptions } from './common-limit-options.js';

/**
 * The options of an `adaptive` limit, which counts the requests in flight in one process and learns how many it can take. Options that need
 * a shared counter or a fixed quota are not available.
 */
export interface AdaptiveLimitOptions extends Omit<
  CommonLimitOptions,
  | 'scope'
  | 'count'
  | 'status'
  | 'blockFor'
  | 'strike'
  | 'forgetAfter'
  | 'countRefused'
  | keyof CommonFeatureOptions
  | 'within'
  | 'replicas'
> {
  /** Each instance of the app learns on its own. */
  scope: 'instance';
  /**
   * The key of the counter. By default, all requests share the capacity of the instance.
   * @default 'global'
   */
  key?: LimitKey | undefined;
}

/** The options that a limit of an algorithm accepts in addition to those of the algorithm and of features. */
type Optional<Algo extends AlgorithmName> = Algo extends 'budget' | 'concurrency' | 'leaky-bucket'
  ? Omit<CommonLimitOptions, 'prefetch' | 'countRefused'>
  : Algo extends 'fixed-window' | 'sliding-window' | 'calendar-window'
    ? CommonLimitOptions
    : Omit<CommonLimitOptions, 'countRefused'>;

/** A limit of one algorithm. */
export type LimitOf<Algo extends AlgorithmName> = Algo extends 'adaptive'
  ? WithFeatures<OptionsOf<Algo>> & AdaptiveLimitOptions
  : WithFeatures<OptionsOf<Algo>> & Optional<Algo>;

/** One limit: an algorithm with its options, and the options of every limit. */
export type LimitDefinition = { [Algo in AlgorithmName]: LimitOf<Algo> }[AlgorithmName];

type KeysOf<Definition> = Definition extends unknown ? keyof Definition : never;
type WithoutOthers<Definition> = Definition extends unknown
  ? Definition & { [Other in Exclude<KeysOf<LimitDefinition>, keyof Definition>]?: undefined }
  : never;

/**
 * A limit that a function returns. TypeScript accepts unknown properties in return values, so this type declares the options of all other
 * algorithms as absent.
 */
export type ExactLimit = WithoutOthers<LimitDefinition>;

/** The options that all limits of an app use unless they set their own. */
export type LimitDefaults = Omit<
  CommonLimitOptions,
  keyof CommonFeatureOptions | keyof DecisionHooksOptions | 'name' | 'within' | 'perRoute' | 'phase'
>;

/**
 * Returns the limit unchanged. Use it to declare a limit away from where it is used: TypeScript then reports misspelled options, which it
 * does not check in the return value of a function, and keeps the exact type.
 *
 * @example
 * ```ts
 * const plans = { free: defineLimit({ name: 'plan', algo: 'gcra', rate: 1, interval: '1s' }) };
 * ```
 */
export function defineLimit(limit: LimitDefinition): LimitDefinition {
  return limit;
}

/**
 * Returns several limits by name unchanged, in the form that `define` and `forFeature` take; see `defineLimit`.
 *
 * @example
 * ```ts
 * useFactory: () => ({ define: defineLimits({ login: { algo: 'sliding-log', rate: 5, interval: '15m' } }) })
 * ```
 */
export function defineLimits<Name extends string>(
  limits: Readonly<Record<Name, LimitDefinition>>,
): Readonly<Record<Name, LimitDefinition>> {
  return limits;
}
