import { checkResultOf } from '../stores/store-decision.js';
import type { Rule } from '../rules/rule.js';
import type { RequestParts } from '../transports/request-reader.js';
import { chargesOf, type Checked, nothingChecked, type RequestState } from './request-state.js';

/** What a middleware checked, before the route was known. */
export interface MiddlewareState extends Checked {
  /** The middleware's check. A second middleware on the same request takes part in it. */
  middleware?: Promise<void>;
}

/** By Node's own request: every framework gives that one to middlewares. */
const states = new WeakMap<object, MiddlewareState>();

/** The state of a request in a middleware. */
export function openMiddlewareState(request: object): MiddlewareState {
  let state = states.get(request);
  if (state === undefined) states.set(request, (state = nothingChecked()));
  return state;
}

/** What a middleware checked is not checked again, but told of. Gives those of the rules that are left to check. */
export function adoptMiddlewareChecks(
  { request }: RequestParts,
  state: RequestState,
  rules: readonly Rule[],
): readonly Rule[] {
  const early = (state.middleware = findMiddlewareState(request));
  if (early === undefined) return rules;
  const holds = ({ rule }: { readonly rule: Rule }) => rules.includes(rule);
  state.applicable.push(...early.applicable.filter((rule) => rules.includes(rule)));
  state.checked.push(...early.checked.filter(holds));
  state.decisions.push(...early.decisions.filter((_, index) => holds(early.checked[index]!)));
  state.charges.push(...chargesOf(early).filter(holds));
  const limits = state.checked.map(({ limit }) => limit);
  if (limits.length > 0) state.result = checkResultOf(state.decisions, limits);
  return rules.filter((rule) => !early.applicable.includes(rule));
}

/** What a middleware checked of a request. */
export function findMiddlewareState(request: object | undefined): MiddlewareState | undefined {
  if (request === undefined) return undefined;
  // Fastify wraps the request, Express extends it.
  return states.get(request) ?? states.get((request as { raw?: object }).raw ?? request);
}
