import type { Policy } from '../config/policy.js';
import { policyMessages } from '../../engine/errors/messages/policy.js';
import { identityOf } from '../overrides/lists/listed.js';
import type { LimitRegistry } from '../rules/limit-registry.js';
import { identityProblem, keyProblem, patternProblem } from '../rules/possible-keys.js';
import type { Rule } from '../rules/rule.js';

/** The keys and identities of a policy that no limit can count by, each with its place. The limits of code and routes have to be known. */
export function keyProblems({ overrides, lists }: Policy, registry: LimitRegistry): string[] {
  const rules = new Map(registry.named.map(({ rule }) => [rule.name, rule]));
  const inUse = registry.keysInUse;
  const problems: string[] = [];
  const add = (place: string, expected: string | undefined) => {
    if (expected !== undefined) problems.push(`${place}: ${policyMessages.impossibleKey(expected)}`);
  };
  // A limit that only this version of the policy has is on no route yet.
  const ofLimit = (place: string, rule: Rule | undefined, key: string) => {
    if (rule !== undefined) add(place, key.endsWith('*') ? patternProblem(rule, key) : keyProblem(rule, key));
  };
  for (const { limit, key, place } of overrides) ofLimit(place, rules.get(limit), key);
  for (const { limit, key, place } of lists) {
    const identity = identityOf(key);
    if (identity === undefined) continue;
    if (limit === '') add(place, identityProblem(identity, inUse));
    else ofLimit(place, rules.get(limit), identity);
  }
  return problems;
}
