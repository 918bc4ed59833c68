import { configError } from '../../engine/errors/errors.js';
import { withinMessages } from '../../engine/errors/messages/calls.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { WithinOptions } from '../../engine/limits/consume-options.js';
import type { Rule } from './rule.js';

const MOST_LEVELS = 8;

interface DefinedRules {
  readonly names: readonly string[];
  find(name: string): Rule | undefined;
}

/** The rules of all ancestors of a limit, its parent first. Throws `RateLimitConfigError`. */
export function ancestorsOf(rule: Rule, defined: DefinedRules, location: string): readonly Rule[] {
  const chain = [rule];
  for (let child = rule; child.configured.parent !== undefined; child = chain.at(-1)!) {
    const name = child.configured.parent;
    const parent = defined.find(name);
    if (parent === undefined) {
      const others = defined.names.filter((known) => chain.every((each) => each.name !== known));
      throw configError('SLUICE_UNKNOWN_LIMIT', withinMessages.unknownParent(location, name, others));
    }
    if (chain.includes(parent)) {
      const names = [...chain.slice(chain.indexOf(parent)), parent].map((each) => each.name);
      throw configError('SLUICE_INVALID_WITHIN', withinMessages.circle(location, names));
    }
    const problem = problemOfParent(child, parent, location);
    if (problem !== undefined) throw configError('SLUICE_INVALID_WITHIN', problem);
    chain.push(parent);
    if (chain.length > MOST_LEVELS)
      throw configError('SLUICE_INVALID_WITHIN', withinMessages.tooDeep(location, MOST_LEVELS));
  }
  return chain.slice(1);
}

/** The reason why the parent's units cannot be charged together with those of its children; `undefined` if they can. */
function problemOfParent(
  child: Rule,
  { configured: parent, name, settings }: Rule,
  location: string,
): string | undefined {
  const { configured: own } = child;
  if (parent.adapts) return withinMessages.parentAdapts(location, name, parent.algorithm.name);
  if (settings.childless !== undefined) return withinMessages.parentWith(location, name, settings.childless);
  // An estimate is settled for each level by its own cost.
  const needsCost = child.settings.measure !== undefined && !settings.hasCost;
  if (needsCost) return withinMessages.parentWithoutCost(location, child.name, name);
  if (parent.planOption !== undefined) return withinMessages.parentWith(location, name, parent.planOption);
  if (parent.instance === own.instance) return undefined;
  return withinMessages.otherScope(location, name, scopeOf(own), scopeOf(parent));
}

/** Throws if a limit with children becomes a plan. */
export function refusePlanOfParent({ name, planOption }: CompiledLimit, location: string): void {
  if (planOption === undefined) return;
  throw configError('SLUICE_INVALID_WITHIN', withinMessages.hasOthersWithin(location, name, planOption));
}

function scopeOf({ instance }: { readonly instance: boolean }): string {
  return instance ? 'instance' : 'cluster';
}

/**
 * Splits an identity such as `o1/t1/u1`, as `shownIdentity` displays it, into the limit's own key and the keys of its ancestors.
 * `undefined` if there are too few parts, or if one of them is a hash.
 */
export function keysOfShown(
  rule: Rule,
  shown: string,
): { readonly key: string; readonly options: WithinOptions } | undefined {
  const { ancestors } = rule;
  if (ancestors.length === 0) return { key: shown, options: {} };
  const steps = shown.split('/');
  const above = steps.slice(0, ancestors.length);
  const key = steps.slice(ancestors.length).join('/');
  if (key === '' || above.some((step) => step === '' || step.startsWith('#'))) return undefined;
  const within = Object.fromEntries(ancestors.toReversed().map(({ name }, index) => [name, above[index]!]));
  return { key, options: { within } };
}
