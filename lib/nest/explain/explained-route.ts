import type { RequestTrait } from '../../storage/features/feature.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { NOBODY } from '../../engine/limits/hierarchy.js';
import type { BoundKey } from '../../app/key-resolvers/key-resolver.factory.js';
import { LeveledInput } from '../../app/rules/resolve/leveled-input.js';
import type { Rule } from '../../app/rules/rule.js';
import { type AskedLimit, ofShare } from './asked-limit.js';
import type { Identities } from './identities.js';
import type { RouteQuery } from './question.js';
import { reasons } from './reasons.js';

/** The maximum number of levels that may leave a request out for which all combinations of costs are computed. */
const MOST_OPEN = 8;

/**
 * Resolves the check of a limit for a hypothetical request, together with all `rules` that are checked in the same call. Functions cannot
 * be called.
 */
export function askedOfRoute(
  rule: Rule,
  identities: Identities,
  { cost: given, share }: Pick<RouteQuery, 'cost' | 'share'>,
  rules: readonly Rule[],
): AskedLimit {
  const { key, skip, priority, trait } = rule.settings;
  const { identity: own, note } = identities.of(rule) ?? {};
  const isKnown = [rule, ...rule.ancestors].every((level) => identities.of(level) !== undefined);
  const identity = isKnown ? rule.identityAmong((level) => identities.of(level)?.identity) : undefined;
  const whole = identity === undefined ? rule.limit : rule.limitFor(identity);
  const { limit, failure } = ofShare(rule, whole.meet(rule.usual), share);
  const cost = costOfRoute(rule, identities, given, rules);
  const known = { limit, identity, note, cost, priority: rule.fixedPriority };
  if (limit.off) return { status: 'off', ...known, reason: reasons.isOff() };
  if (failure !== undefined) return { status: 'fails', ...known, reason: failure };
  const costUnknown = rule.hasCost ? reasons.isFunction('cost') : reasons.costsWhatIsWithin();
  const unknown = [
    ...(own === undefined ? [reasons.keyNotGiven(key.noun)] : []),
    ...(own !== undefined && !isKnown ? [reasons.keysAboveNotGiven(rule)] : []),
    ...(trait === undefined ? [] : unknownOf(trait, limit)),
    ...(cost === undefined ? [costUnknown] : []),
    ...(typeof priority === 'function' ? [reasons.isFunction('priority')] : []),
    ...(skip === undefined ? [] : [reasons.isFunction('skip')]),
  ];
  if (unknown.length === 0) return { status: 'asked', ...known };
  return { status: 'depends on the request', ...known, reason: unknown.join('; ') };
}

/** The reason why the request's trait is not known, if the limit depends on it. */
function unknownOf({ by, option }: RequestTrait<BoundKey>, limit: CompiledLimit): string[] {
  if (typeof by === 'function') return [reasons.isFunction(option)];
  return limit.unmet !== limit || by.given === 'global' ? [] : [reasons.tenantNotGiven(by.noun)];
}

/** The cost of the request for a limit; `undefined` if that depends on the request. `given`: the units if `cost` is a function. */
function costOfRoute(
  rule: Rule,
  identities: Identities,
  given: number | undefined,
  rules: readonly Rule[],
): number | undefined {
  const open = rules
    .filter(({ ancestors }) => ancestors.includes(rule))
    .filter((each) => mayLeaveOut(each, identities));
  if (open.length > MOST_OPEN && !rule.hasCost) return undefined;
  const costs = new Set<number>();
  for (let choice = 0; choice < 2 ** open.length; choice++) {
    const leftOut = open.filter((_, index) => (choice & (1 << index)) !== 0);
    const input = new LeveledInput(rules, {
      skips: (each) => leftOut.includes(each),
      identity: () => NOBODY,
      cost: ({ settings: { cost: own } }) => (typeof own === 'number' ? own : (given ?? NaN)),
    });
    // This input is always synchronous.
    costs.add(input.cost(rule) as number);
  }
  const [cost] = costs;
  return costs.size === 1 && !Number.isNaN(cost) ? cost : undefined;
}

/** Returns true if a level may not count a request. */
function mayLeaveOut(rule: Rule, identities: Identities): boolean {
  const { skip, onMissingKey } = rule.settings;
  return skip !== undefined || (onMissingKey === 'skip' && identities.of(rule) === undefined);
}
