import type { ExecutionContext } from '@nestjs/common';
import { costOfLevel, type MetLevel } from '../rules/level-costs.js';
import type { Rule } from '../rules/rule.js';
import { costOf, skips } from '../rules/rule-entry.js';
import type { Identities } from './identities.js';

/** Levels of which so many may leave a request out: what others cost is not tried for every choice of more. */
const MOST_OPEN = 8;

/** The rules that are checked together, and all that they are within. */
function levelsOf(rules: readonly Rule[]): Rule[] {
  return [...new Set(rules.flatMap((rule) => [rule, ...rule.ancestors]))];
}

/** What a route's request costs a level; nothing where that depends on the request. `given`: the units, where `cost` is a function. */
export function costOfRoute(
  rule: Rule,
  rules: readonly Rule[],
  identities: Identities,
  given: number | undefined,
): number | undefined {
  const own = ({ hasCost, settings: { cost } }: Rule) =>
    hasCost ? (typeof cost === 'number' ? cost : (given ?? NaN)) : undefined;
  const levels = levelsOf(rules);
  const open = levels.filter((each) => isWithin(each, rule) && mayLeaveOut(each, identities));
  if (open.length > MOST_OPEN) return own(rule);
  const costs = new Set<number>();
  for (let choice = 0; choice < 2 ** open.length; choice++) {
    const met = levels.map((each): [Rule, MetLevel] => {
      const counts = !open.includes(each) || (choice & (1 << open.indexOf(each))) === 0;
      return [each, { counts, cost: own(each) }];
    });
    costs.add(costOfLevel(rule, new Map(met)));
  }
  const [cost] = costs;
  return costs.size === 1 && !Number.isNaN(cost) ? cost : undefined;
}

function isWithin({ ancestors }: Rule, rule: Rule): boolean {
  return ancestors.includes(rule);
}

/** Whether a request may be none that a level counts. */
function mayLeaveOut(rule: Rule, identities: Identities): boolean {
  const { skip, onMissingKey } = rule.settings;
  return skip !== undefined || (onMissingKey === 'skip' && identities.of(rule) === undefined);
}

/** What a request costs the limits that are checked together. */
export class RequestCosts {
  private readonly levels: readonly Rule[];
  private readonly met = new Map<Rule, Promise<MetLevel>>();

  constructor(
    /** The limits that are checked. What they are within may have been checked before. */
    private readonly rules: readonly Rule[],
    private readonly context: ExecutionContext,
    /** Whether the key of a limit finds somebody. */
    private readonly finds: (rule: Rule) => Promise<boolean>,
  ) {
    this.levels = levelsOf(rules);
  }

  /** Rejects with what a function of the app fails with. */
  async of(rule: Rule): Promise<number> {
    if (rule.hasCost) return costOf(rule, this.context);
    const within = this.levels.filter((each) => isWithin(each, rule));
    const met = await Promise.all(within.map(async (each): Promise<[Rule, MetLevel]> => [each, await this.meet(each)]));
    return costOfLevel(rule, new Map(met));
  }

  private meet(rule: Rule): Promise<MetLevel> {
    const known = this.met.get(rule);
    if (known !== undefined) return known;
    const meeting = this.look(rule);
    this.met.set(rule, meeting);
    return meeting;
  }

  private async look(rule: Rule): Promise<MetLevel> {
    const isAsked = this.rules.includes(rule) && !(await skips(rule, this.context));
    const counts = isAsked && (await this.finds(rule));
    return { counts, cost: counts && rule.hasCost ? await costOf(rule, this.context) : undefined };
  }
}
