import type { LimitSpec } from '../limit-definition.js';
import { declare } from './metadata.js';

/**
 * Says what a route allows, or all routes of a controller together: limits, names of defined limits, or functions of the
 * context that choose among these. Several add up, also those of the controller and the module; of one name, the nearest
 * holds.
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
