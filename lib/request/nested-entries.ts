import type { ExecutionContext } from '@nestjs/common';
import type { Rule } from '../rules/rule.js';
import { askedEntry, costOf, identityOf, knownEntry, type RuleEntry, skips } from '../rules/rule-entry.js';
import type { RequestParts } from '../transports/request-reader.js';
import { andThen, type Awaitable, mapAll } from '../util/awaitable.js';

/** A level of a hierarchy, as a request meets it. */
interface Level {
  /** Whether it does not count the request. */
  readonly skipped: boolean;
  readonly identity: string | undefined;
  /** Its own, where it has one. */
  readonly cost: number | undefined;
}

/**
 * What a request asks of the store where limits are within others. Each level says for itself whether it counts the request; whom it is
 * within is known in any case. A level without a `cost` of its own is charged what is charged within it.
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
      if (level.skipped || level.identity === undefined) return undefined;
      return knownEntry(rule, rule.identityAmong(foundIn), levelCost(rule, known), context);
    });
  });
}

function look(rule: Rule, isAsked: boolean, context: ExecutionContext, parts: RequestParts): Awaitable<Level> {
  return andThen(isAsked ? skips(rule, context) : true, (skipped) =>
    andThen(identityOf(rule, context, parts, !skipped), (identity) =>
      andThen(rule.hasCost && !skipped ? costOf(rule, context) : undefined, (cost): Level => ({
        skipped,
        identity,
        cost,
      })),
    ),
  );
}

/** The cost of a level: its own, else the largest one of those directly within it, else 1. */
function levelCost(rule: Rule, levels: ReadonlyMap<Rule, Level>): number {
  const own = levels.get(rule)?.cost;
  if (own !== undefined) return own;
  const within = [...levels.keys()].filter(({ ancestors }) => ancestors[0] === rule);
  return Math.max(1, ...within.map((each) => levelCost(each, levels)));
}
