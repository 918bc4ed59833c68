import type { ExecutionContext, Type } from '@nestjs/common';
import type { AlgorithmName } from '../../engine/algorithms/index.js';
import type { ResolvedKey } from '../../engine/limits/limit-key.js';
import type { Duration } from '../../engine/options/values.js';
import type { ExactLimit, LimitOf } from './limit-definition.js';

/** What a limit function returns: the name of a defined limit, a limit, several of these, or `null` or `false` for no limit. */
export type LimitAnswer = string | ExactLimit | null | false | readonly (string | ExactLimit | null | false)[];

/**
 * Chooses limits by the request. It is called once a request: in the guard, or, if no user is known yet and guards may find one,
 * after those guards; its limits are then checked there. If it returns `undefined`, such as for an unknown plan, or takes longer
 * than the module's `resolveTimeout`, it has failed, and the request is answered with 500.
 */
export type LimitFunction = (context: ExecutionContext) => LimitAnswer | Promise<LimitAnswer>;

/** Finds the rate of a limit for a request, which is `null` if the limit does not apply to it. It is called as `LimitFunction`s are. */
export type RateFunction = (context: ExecutionContext) => number | null | Promise<number | null>;

/** The rate of a limit, which may depend on the request. */
export interface DynamicRate {
  /** A whole number >= 1, or a function of the context that returns one, or `null` for no limit. */
  rate: number | RateFunction;
}

/** A limit with a rate that may depend on the request. */
export type WithDynamicRate<Limit> = Limit extends Record<'rate', number> ? Omit<Limit, 'rate'> & DynamicRate : Limit;

/** A limit whose rate may depend on the request. All its rates count in one counter, as when a rate is changed. */
export type DynamicLimit = { [Algo in AlgorithmName]: WithDynamicRate<LimitOf<Algo>> }[AlgorithmName];

/**
 * An injectable class that finds the limits of a request, for example in a database. It stands where a function of the context may
 * stand: in the module's `limits` and in `@RateLimit`. With `keyOf`, answers are remembered.
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
   * Returns a limit, the name of a defined limit, several of these, or `null` for no limit. It has failed if it throws, returns
   * anything else, or takes longer than the module's `resolveTimeout`. Then its last good answer for that key applies, else
   * `fallback`; without both, the request fails. It is called again a second later.
   *
   * @param key what `keyOf` returned
   */
  resolve(context: ExecutionContext, key: string | undefined): LimitAnswer | Promise<LimitAnswer>;
  /**
   * The key by which answers are remembered, such as a tenant: `resolve` is called once for all requests of a key within `ttl`, and
   * requests that come meanwhile wait for that call. Requests without a key share one answer.
   * @default answers are not remembered: `resolve` is called for each request
   */
  keyOf?(context: ExecutionContext): ResolvedKey | Promise<ResolvedKey>;
  /**
   * How long an answer applies before `resolve` is called again: milliseconds or a duration such as `'1m'`.
   * @default '1m'
   */
  readonly ttl?: Duration;
  /**
   * The most keys whose answers are remembered. The least recently used are forgotten first.
   * @default 10_000
   */
  readonly maxKeys?: number;
  /**
   * What applies if `resolve` fails and has no good answer for the key yet.
   * @default the request fails
   */
  readonly fallback?: LimitAnswer;
}

/** What finds limits by the request: a function of the context, or an injectable class. */
export type LimitSelector = LimitFunction | Type<LimitResolver>;

/** An entry of the module's `limits`. */
export type ModuleLimit = DynamicLimit | LimitSelector;

/** An argument of `@RateLimit`. */
export type LimitSpec<Name = string> = Name | DynamicLimit | LimitSelector;
