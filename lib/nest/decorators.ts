import { createParamDecorator, type ExecutionContext, Inject } from '@nestjs/common';
import type { LimitSpec } from '../app/config/limits-by-request.js';
import { getLimiterToken, recordInjection } from '../app/config/tokens.js';
import { declare, declareNamespace } from '../app/rules/declared-metadata.js';
import { RateLimitConfigError } from '../engine/errors/errors.js';
import { messages } from '../engine/errors/messages/general.js';
import { expectModule } from './missing-module.js';
import { RequestDecision } from './request/request-decision.js';

/**
 * No value has this type. It stands for `string`: with a plain `string`, TypeScript would mistake the option `anchor` for the string method
 * of that name, and editors would suggest string methods as options.
 */
declare class NoText {
  private readonly toString: never;
  private readonly valueOf: never;
}

/**
 * Declares the limits of a route, or of all routes of a controller together: limits, names of defined limits, or functions of the context
 * and classes that implement `LimitResolver`, which choose limits per request. Limits of the route, of its controller, of the controller's
 * superclasses and of the module all apply; if names match, the limit closest to the handler wins. The decorator has no effect unless the
 * app imports `RateLimitModule`. A method that overrides another one declares its own limits, as with Nest's decorators.
 *
 * @example
 * ```ts
 * @RateLimit('login', { algo: 'token-bucket', rate: 5, interval: '10s' })
 * ```
 */
export function RateLimit<Name extends string | NoText = string | NoText>(
  ...specs: [LimitSpec<NoInfer<Name>>, ...LimitSpec<NoInfer<Name>>[]]
): ClassDecorator & MethodDecorator {
  expectModule();
  // Invalid limits, and an empty list, are reported at start-up, when the route is known.
  const given = specs.length > 0 ? (specs as LimitSpec[]) : [undefined as unknown as LimitSpec];
  return declare((declared) => ({ ...declared, specs: [...given, ...declared.specs] }));
}

/**
 * Sets the namespace of the counters of a controller's or a route's limits: 1 to 128 printable ASCII characters, not starting with `@`. By
 * default it consists of the path, version and host of the controller, and the method and path of the route; for a gateway, of its
 * namespace and messages; for other handlers, of their patterns or fields. So classes can be renamed. A namespace is required if two of
 * these are equal, and it keeps the counters when a path changes. Routes of a controller with a namespace combine it with the name of their
 * method.
 *
 * @example
 * ```ts
 * @RateLimit.namespace('orders')
 * ```
 */
RateLimit.namespace = declareNamespace;

/** Why a route or a controller is exempt from limits. */
export interface SkipReason {
  /** For readers, and for `nestjs-sluice routes`, which doesn't report the route then. */
  because: string;
}

/**
 * Exempts a route or a controller from inherited limits: those of the module and, for a route, of its controller. Without names, it skips
 * all of them. Limits that `@RateLimit` declares in the same place, or closer to the handler, still apply.
 *
 * @example
 * ```ts
 * @SkipRateLimit('hourly')
 * @SkipRateLimit({ because: 'the load balancer polls it' })
 * ```
 */
export function SkipRateLimit(
  ...namesAndReason: [...names: string[], last: string | SkipReason] | []
): ClassDecorator & MethodDecorator {
  const last = namesAndReason.at(-1);
  const hasReason = typeof last === 'object' && last !== null && 'because' in last;
  // Anything else than names is reported at start-up, when the route is known.
  const names = (hasReason ? namesAndReason.slice(0, -1) : namesAndReason) as string[];
  const because: unknown = hasReason ? last.because : undefined;
  if (hasReason && (typeof because !== 'string' || because === '')) {
    throw new RateLimitConfigError(messages.wrongReason(because));
  }
  return declare(({ specs, skips, because: before }) => ({
    specs,
    skips: names.length === 0 || skips === 'all' ? 'all' : [...names, ...skips],
    because: (because as string | undefined) ?? before,
  }));
}

/**
 * Injects the `Limiter` of a defined limit.
 *
 * @example
 * ```ts
 * constructor(@InjectLimiter('login') private readonly logins: Limiter) {}
 * ```
 */
export function InjectLimiter(name: string): PropertyDecorator & ParameterDecorator {
  const inject = Inject(getLimiterToken(name));
  return (target: object, key?: string | symbol, index?: number) => {
    const host = typeof target === 'function' ? target : target.constructor;
    recordInjection(host, name);
    // Without an index, Nest injects a property; its type lacks that case.
    inject(target, key, index as number);
  };
}

/** Injects the `RequestDecision` of all limits of a request into a handler; `undefined` if no limit applied. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_: unknown, context: ExecutionContext): RequestDecision | undefined => RequestDecision.of(context),
);
