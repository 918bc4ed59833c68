import type { LimitSpec } from '../../app/config/limits-by-request.js';
import { expectModule } from '../missing-module.js';
import { declare, declareNamespace } from '../../app/rules/declared-metadata.js';

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
