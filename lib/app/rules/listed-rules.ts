import { configError } from '../../engine/errors/errors.js';
import { askMessages } from '../../engine/errors/messages/calls.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { Declaration } from './declaration.js';
import type { LimitRegistry } from './limit-registry.js';
import type { Rule } from './rule.js';

/**
 * Turns a list of limits, given as names or definitions, into rules that apply to requests like those of a route. Throws
 * `RateLimitConfigError` if
 * - a limit is invalid, or no limit has its name;
 * - a limit is listed twice, in the list or among `others`;
 * - `problemOf` returns a problem of a rule.
 */
export function listedRules(
  limits: readonly (string | LimitDefinition)[],
  registry: LimitRegistry,
  declaration: Pick<Declaration, 'location' | 'namespace'>,
  problemOf: (rule: Rule) => string | undefined,
  others: readonly Rule[] = [],
): Rule[] {
  const rules = limits.map((limit) => registry.rule(limit, declaration));
  refuseTwice([...others, ...rules], declaration.location);
  for (const rule of rules) {
    const problem = problemOf(rule);
    if (problem !== undefined) throw configError('SLUICE_UNSUPPORTED_LIMIT', problem);
    rule.isOnRoute = true;
  }
  return rules;
}

/** Throws `RateLimitConfigError` for a limit that is listed twice. */
export function refuseTwice(rules: readonly Pick<Rule, 'name' | 'limit'>[], location: string): void {
  const ids = rules.map(({ limit }) => limit.id);
  const twice = rules.find((_, index) => ids.indexOf(ids[index]!) < index);
  if (twice !== undefined)
    throw configError('SLUICE_DUPLICATE_LIMIT', askMessages.sameLimitTwice(location, twice.name));
}
