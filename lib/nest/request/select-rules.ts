import type { Phase } from '../../app/config/common-limit-options.js';
import { rulesOfPhase } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import { andThen, type Awaitable } from '../../engine/util/awaitable.js';
import { giveBack } from './charges.js';
import type { LimitedRequest } from './limited-request.js';
import { findEarly } from './requests.js';

/** Finds the rules that a request is checked against in a phase. */
export function selectRules(phase: Phase, request: LimitedRequest): Awaitable<readonly Rule[]> {
  if (phase === 'middleware') return request.routeRules.middleware;
  return phase === 'guard' ? rulesInGuard(request) : rulesAfterGuards(request);
}

/** The rules of the guard, without those that a middleware has checked. */
function rulesInGuard(request: LimitedRequest): Awaitable<readonly Rule[]> {
  const { routeRules } = request;
  if (!routeRules.hasSources || routeRules.waitsForGuards(request.parts))
    return withoutEarlier(request, routeRules.guard);
  return andThen(routeRules.ask(request.context), (rules) => {
    request.rules = rules;
    return withoutEarlier(request, rulesOfPhase(rules, 'guard'));
  });
}

/** Leaves out what a middleware has checked, and takes over its decisions. */
function withoutEarlier(request: LimitedRequest, rules: readonly Rule[]): readonly Rule[] {
  const earlier = request.routeRules.middleware.length > 0 ? findEarly(request.parts.request) : undefined;
  return earlier === undefined ? rules : request.adopt(earlier, rules);
}

/** The rules after the guards, and all rules of functions that could not be called before. */
function rulesAfterGuards(request: LimitedRequest): Awaitable<readonly Rule[]> {
  const { routeRules, rules: known } = request;
  if (!routeRules.hasSources) return routeRules.authenticated;
  return andThen(known ?? routeRules.ask(request.context), async (rules) => {
    request.rules = rules;
    // Functions may have returned nearer limits with names that were already checked.
    await giveBack(request.keepOnly(rules));
    if (known !== undefined) return rulesOfPhase(rules, 'authenticated');
    // What was checked before is not checked again, even if limits within it were not.
    return rules.filter((rule) => !routeRules.guard.includes(rule));
  });
}
