import type { LimitSpec } from '../../config/limit-definition.js';
import { declare, declareNamespace } from '../../rules/declared-metadata.js';

/**
 * Says what a route allows, or all routes of a controller together: limits, names of defined limits, or functions of the
 * context that choose among these. Several add up, also those of the controller, of the classes that it extends, and of the
 * module; of one name, the nearest holds. A method that overrides another declares its own, as with Nest's decorators.
 *
 * @example
 * ```ts
 * @RateLimit('login', { algo: 'token-bucket', rate: 5, interval: '10s' })
 * ```
 */
export function RateLimit(...specs: [LimitSpec, ...LimitSpec[]]): ClassDecorator & MethodDecorator {
  // What is wrong is told at start-up, when the place is known; so is a list that came out empty.
  const given = specs.length > 0 ? specs : [undefined as unknown as LimitSpec];
  return declare((declared) => ({ ...declared, specs: [...given, ...declared.specs] }));
}

/**
 * Names what shares the counters of a controller's limits, or of a route's: 1 to 128 printable ASCII characters, of which `@` is not the first. Without it
 * they are known by the path, the version and the host of the controller, and the method and path of the route; a gateway by
 * its namespace and messages, other handlers by their patterns or fields. So they stay the same whatever a class is called.
 * A name is needed where these do not tell two of them apart, and keeps the counters when a path changes. Routes of a controller
 * that is named so are known by its name and that of their method.
 *
 * @example
 * ```ts
 * @RateLimit.namespace('orders')
 * ```
 */
RateLimit.namespace = declareNamespace;
