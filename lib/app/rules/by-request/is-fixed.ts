import type { LimitDefinition } from '../../config/limit-definition.js';
import type { DynamicLimit, LimitSelector, LimitSpec } from '../../config/limits-by-request.js';

/** A limit that depends on the request: a function or a class returns the limit or its rate. */
export type ByRequest = DynamicLimit | LimitSelector;

/** Returns true if a limit is the same for all requests: neither it nor its rate is a function. */
export function isFixed(spec: LimitSpec): spec is string | LimitDefinition {
  return typeof spec !== 'function' && typeof (spec as { readonly rate?: unknown } | null)?.rate !== 'function';
}
