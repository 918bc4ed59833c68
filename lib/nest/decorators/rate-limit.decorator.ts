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
 * Sets the namespace of the counters of a controller's or a route's limits: 1 to 128 printable ASCII characters, not starting
 * with `@`. By default it is made of the path, version and host of the controller, and the method and path of the route; for a
 * gateway, of its namespace and messages; for other handlers, of their patterns or fields. So classes can be renamed. A namespace
 * is required if two of these are equal, and keeps the counters when a path changes. Routes of a controller with a namespace use
 * it and the name of their method.
 *
 * @example
 * ```ts
 * @RateLimit.namespace('orders')
 * ```
 */
RateLimit.namespace = declareNamespace;
