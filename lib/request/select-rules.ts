import type { Phase } from '../config/limit-definition.js';
import { rulesOfPhase } from '../rules/plan.js';
import type { Rule } from '../rules/rule.js';
import { andThen, type Awaitable } from '../util/awaitable.js';
import { giveBack } from './charges.js';
import type { LimitedRequest } from './limited-request.js';
import { findEarly } from './requests.js';

/** Finds the rules that a request is checked against in a phase. */
export function selectRules(phase: Phase, request: LimitedRequest): Awaitable<readonly Rule[]> {
  return SELECTORS[phase](request);
}

const SELECTORS: { readonly [phase in Phase]: (request: LimitedRequest) => Awaitable<readonly Rule[]> } = {
  middleware: ({ plan }) => plan.middleware,
  guard: rulesInGuard,
  authenticated: rulesAfterGuards,
};

/** The rules of the guard, without those that a middleware has checked. */
function rulesInGuard(request: LimitedRequest): Awaitable<readonly Rule[]> {
  const { plan } = request;
  const left = (rules: readonly Rule[]) => {
    const earlier = plan.middleware.length > 0 ? findEarly(request.parts.request) : undefined;
    return earlier === undefined ? rules : request.adopt(earlier, rules);
  };
  if (!plan.hasSources || plan.asksLater(request.parts)) return left(plan.guard);
  return andThen(plan.ask(request.context), (rules) => {
    request.rules = rules;
    return left(rulesOfPhase(rules, 'guard'));
  });
}

/** The rules after the guards, and all rules of functions that could not be asked before. */
function rulesAfterGuards(request: LimitedRequest): Awaitable<readonly Rule[]> {
  const { plan, rules: known } = request;
  if (!plan.hasSources) return plan.authenticated;
  return andThen(known ?? plan.ask(request.context), async (rules) => {
    request.rules = rules;
    // Functions may have given nearer limits of names that were already checked.
    await giveBack(request.keepOnly(rules));
    const later = rulesOfPhase(rules, 'authenticated');
    if (known !== undefined) return later;
    return rules.filter((rule) => later.includes(rule) || !plan.guard.includes(rule));
  });
}
