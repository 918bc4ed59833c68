import type { ExecutionContext } from '@nestjs/common';
import { costOfLevel, type MetLevel } from '../rules/level-costs.js';
import type { Rule } from '../rules/rule.js';
import { askedEntry, costOf, identityOf, knownEntry, type RuleEntry, skips } from '../rules/rule-entry.js';
import type { RequestParts } from '../transports/request-reader.js';
import { andThen, type Awaitable, mapAll } from '../util/awaitable.js';

/** A level with whom the request counts for there. */
interface IdentifiedLevel extends MetLevel {
  readonly identity: string | undefined;
}

/**
 * What a request asks of the store where limits are within others. Each level says for itself whether it counts the request; whom it is
 * within is known in any case.
 */
export function nestedEntries(
  rules: readonly Rule[],
  context: ExecutionContext,
  parts: RequestParts,
): Awaitable<(RuleEntry | undefined)[]> {
  const levels = [...new Set(rules.flatMap((rule) => [rule, ...rule.ancestors]))];
  const isLevel = (rule: Rule) => rule.isNested || levels.some(({ ancestors }) => ancestors.includes(rule));
  const nested = levels.filter(isLevel);
  const looked = mapAll(nested, (rule) => look(rule, rules.includes(rule), context, parts));
  return andThen(looked, (found) => {
    const known = new Map(nested.map((rule, index) => [rule, found[index]!]));
    const foundIn = (rule: Rule) => known.get(rule)?.identity;
    return mapAll(rules, (rule) => {
      const level = known.get(rule);
      if (level === undefined) return askedEntry(rule, context, parts);
      if (!level.counts) return undefined;
      return knownEntry(rule, rule.identityAmong(foundIn), costOfLevel(rule, known), context);
    });
  });
}

function look(
  rule: Rule,
  isAsked: boolean,
  context: ExecutionContext,
  parts: RequestParts,
): Awaitable<IdentifiedLevel> {
  return andThen(isAsked ? skips(rule, context) : true, (skipped) =>
    andThen(identityOf(rule, context, parts, !skipped), (identity) => {
      const counts = !skipped && identity !== undefined;
      const cost = rule.hasCost && counts ? costOf(rule, context) : undefined;
      return andThen(cost, (units): IdentifiedLevel => ({ counts, identity, cost: units }));
    }),
  );
}
