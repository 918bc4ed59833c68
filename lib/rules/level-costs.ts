import type { Rule } from './rule.js';

/** A limit of a hierarchy, as one request meets it. */
export interface MetLevel {
  /** Whether it counts the request: its `skip` does not leave the request out, and its key finds somebody. */
  readonly counts: boolean;
  /** The units that its own `cost` says, if it has one. */
  readonly cost: number | undefined;
}

/**
 * What a request costs a level: the level's own cost, else the largest one that is charged directly within it, else one unit. A level
 * that does not count the request is charged nothing, and passes on what is charged within it.
 */
export function costOfLevel(rule: Rule, levels: ReadonlyMap<Rule, MetLevel>): number {
  return levels.get(rule)?.cost ?? chargedWithin(rule, levels) ?? 1;
}

/** What a call from code costs a level: the level's own cost unless the call names one, else what is charged within it. */
export function costOfCall(rule: Rule, within: number, { hasCost }: { readonly hasCost: boolean }): number {
  return rule.hasCost && !hasCost ? rule.fixedCost : within;
}

function chargedWithin(rule: Rule, levels: ReadonlyMap<Rule, MetLevel>): number | undefined {
  let largest: number | undefined;
  for (const [each, { counts }] of levels) {
    if (each.ancestors[0] !== rule) continue;
    const charged = counts ? costOfLevel(each, levels) : chargedWithin(each, levels);
    if (charged !== undefined) largest = largest === undefined ? charged : Math.max(largest, charged);
  }
  return largest;
}
