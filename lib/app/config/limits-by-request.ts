import type { ExecutionContext, Type } from '@nestjs/common';
import type { AlgorithmName } from '../../engine/algorithms/index.js';
import type { ResolvedKey } from '../../engine/limits/identity.js';
import type { Duration } from '../../engine/options/values.js';
import type { ExactLimit, LimitDefinition, LimitOf } from './limit-definition.js';

/** The return value of a limit function: a limit, the name of a defined limit, several of these, or `null` or `false` for no limit. */
export type LimitAnswer = string | ExactLimit | null | false | readonly (string | ExactLimit | null | false)[];

/**
 * Chooses limits per request. It is called once per request: in the guard, or, if no user is known yet and other guards may set one, after
 * those guards. Its limits are checked at that point. It counts as failed, and the request is answered with 500, if it returns `undefined`,
 * such as for an unknown plan, or takes longer than the module's `resolveTimeout`.
 */
export type LimitFunction = (context: ExecutionContext) => LimitAnswer | Promise<LimitAnswer>;

/** Returns the rate of a limit for a request, or `null` if the limit does not apply to it. It is called like a `LimitFunction`. */
export type RateFunction = (context: ExecutionContext) => number | null | Promise<number | null>;

/** The rate of a limit, which may depend on the request. */
export interface DynamicRate {
  /** A whole number >= 1, or a function of the context that returns one, or `null` for no limit. */
  rate: number | RateFunction;
}

/** A limit with a rate that may depend on the request. */
export type WithDynamicRate<Limit> = Limit extends Record<'rate', number> ? Omit<Limit, 'rate'> & DynamicRate : Limit;

/** A limit whose rate may depend on the request. All of its rates share one counter, as when a rate is changed at run time. */
export type DynamicLimit = { [Algo in AlgorithmName]: WithDynamicRate<LimitOf<Algo>> }[AlgorithmName];

/**
 * An injectable class that finds the limits of a request, for example in a database. You can use it anywhere a function of the context is
 * accepted: in the module's `limits` and in `@RateLimit`. If it has `keyOf`, its results are cached.
 *
 * @example
 * ```ts
 * @Injectable()
 * export class PlanLimits implements LimitResolver {
 *   readonly ttl = '1m';
 *   constructor(private readonly plans: PlanRepository) {}
 *
 *   keyOf(context: ExecutionContext) {
 *     return context.switchToHttp().getRequest().user?.tenant;
 *   }
 *
 *   async resolve(_: ExecutionContext, tenant: string | undefined) {
 *     const { rate } = await this.plans.ofTenant(tenant);
 *     return { name: 'plan', algo: 'gcra', rate, interval: '1s', key: 'user' } as const;
 *   }
 * }
 * ```
 */
export interface LimitResolver {
  /**
   * Returns a limit, the name of a defined limit, several of these, or `null` for no limit. It counts as failed if it throws, returns
   * anything else, or takes longer than the module's `resolveTimeout`. In that case the last valid result for the key applies, or else
   * `fallback`; without either, the request fails. The next call follows after a second.
   *
   * @param key the return value of `keyOf`
   */
  resolve(context: ExecutionContext, key: string | undefined): LimitAnswer | Promise<LimitAnswer>;
  /**
   * The key of the cache, such as a tenant. `resolve` is called once per key and `ttl`; requests that arrive during the call wait for its
   * result. Requests without a key share one result.
   * @default answers are not remembered: `resolve` is called for each request
   */
  keyOf?(context: ExecutionContext): ResolvedKey | Promise<ResolvedKey>;
  /**
   * The time that a result is cached before `resolve` is called again: milliseconds or a duration such as `'1m'`.
   * @default '1m'
   */
  readonly ttl?: Duration;
  /**
   * The maximum number of cached keys. The least recently used are evicted first.
   * @default 10_000
   */
  readonly maxKeys?: number;
  /**
   * The result to use if `resolve` fails and no valid result for the key is cached.
   * @default the request fails
   */
  readonly fallback?: LimitAnswer;
}

/** Chooses limits per request: a function of the context, or an injectable class. */
export type LimitSelector = LimitFunction | Type<LimitResolver>;

/** An entry of the module's `limits`. */
export type ModuleLimit = DynamicLimit | LimitSelector;

/** An argument of `@RateLimit`. */
export type LimitSpec<Name = string> = Name | DynamicLimit | LimitSelector;

/** A limit that depends on the request: a function or a class returns the limit or its rate. */
export type ByRequest = DynamicLimit | LimitSelector;

/** Returns true if a limit is the same for all requests: neither it nor its rate is a function. */
export function isFixed(spec: LimitSpec): spec is string | LimitDefinition {
  return typeof spec !== 'function' && typeof (spec as { readonly rate?: unknown } | null)?.rate !== 'function';
}
