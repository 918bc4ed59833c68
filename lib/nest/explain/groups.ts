import { type RouteRules, rulesOfPhase } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import { reasons } from './reasons.js';
import type { LeftOutRule, Trace, TracedRule } from './trace.js';

/** The way in which a request is checked. */
export interface Checking {
  /** True if functions are only called after the guards, because no user is known before. */
  readonly asksLater?: boolean;
  /** True if a middleware has checked it. */
  readonly wasEarly?: boolean;
  /** The reason why a function failed, if one did. */
  readonly failure?: string | undefined;
}

/** Limits that are checked together: if one of them rejects, none is charged. */
export interface Group {
  readonly rules: readonly TracedRule[];
  /** The reason why the request fails before they are checked. */
  readonly failure: string | undefined;
}

/** The limits of a request, in the consecutive groups in which they are checked. */
export function groupsOf(
  routeRules: RouteRules,
  { inForce, leftOut }: Trace,
  { asksLater = false, wasEarly = false, failure }: Checking,
): { groups: Group[]; leftOut: LeftOutRule[] } {
  const all = [...inForce, ...leftOut.map(({ rule, origin }) => ({ rule, origin, replaces: [] }))];
  const traced = (rules: readonly Rule[]) => rules.flatMap((rule) => all.find((each) => each.rule === rule) ?? []);
  const rules = inForce.map(({ rule }) => rule);
  // The limits of a middleware apply to every route, even if the route skips them.
  const early = wasEarly ? all.map(({ rule }) => rule).filter(({ phase }) => phase === 'middleware') : [];
  const inGuard = asksLater ? routeRules.guard : rulesOfPhase(rules, 'guard');
  const guard = inGuard.filter((rule) => !early.includes(rule));
  const later = rules.filter((rule) => !early.includes(rule) && !inGuard.includes(rule));
  const groups = [
    { rules: traced(early), failure: undefined },
    { rules: traced(guard), failure: asksLater ? undefined : failure },
    { rules: traced(later), failure: asksLater ? failure : undefined },
  ];
  const noted = leftOut.map((each): LeftOutRule => {
    if (early.includes(each.rule)) return { ...each, note: reasons.checkedEarlier() };
    return guard.includes(each.rule) ? { ...each, note: reasons.checkedBefore() } : each;
  });
  return { groups, leftOut: noted };
}
