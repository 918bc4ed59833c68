import type { LimitDefinition, LimitFunction, LimitSpec } from '../../config/limit-definition.js';
import { expectModule } from '../missing-module.js';
import { declare, declareNamespace } from '../../rules/declared-metadata.js';

/**
 * Declares the limits of a route, or of all routes of a controller together: limits, names of defined limits, or functions of
 * the context that choose among these. Limits of the route, of its controller, of the classes that it extends, and of the module
 * all apply; of one name, the nearest does. A method that overrides another declares its own, as with Nest's decorators.
 *
 * @example
 * ```ts
 * @RateLimit('login', { algo: 'token-bucket', rate: 5, interval: '10s' })
 * ```
 */
// The overload without names comes first: otherwise the context of an `anchor` is untyped, as strings have a method `anchor`.
export function RateLimit(
  ...limits: [LimitDefinition | LimitFunction, ...(LimitDefinition | LimitFunction)[]]
): ClassDecorator & MethodDecorator;
/** Declares limits, some of them by name: as above. */
export function RateLimit(...specs: [LimitSpec, ...LimitSpec[]]): ClassDecorator & MethodDecorator;
export function RateLimit(...specs: [LimitSpec, ...LimitSpec[]]): ClassDecorator & MethodDecorator {
  expectModule();
  // Wrong limits, and an empty list, are reported at start-up, when the route is known.
  const given = specs.length > 0 ? specs : [undefined as unknown as LimitSpec];
  return declare((declared) => ({ ...declared, specs: [...given, ...declared.specs] }));
}

/**
 * Names the namespace of the counters of a controller's limits, or of a route's: 1 to 128 printable ASCII characters, of which
 * `@` is not the first. By default it is the path, the version and the host of the controller, and the method and path of the
 * route; of a gateway its namespace and messages, of other handlers their patterns or fields. So a class can be renamed. A name is
 * required where two of these are equal, and keeps the counters when a path changes. Routes of a named controller have its name and
 * that of their method.
 *
 * @example
 * ```ts
 * @RateLimit.namespace('orders')
 * ```
 */
RateLimit.namespace = declareNamespace;
