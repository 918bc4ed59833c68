import { andThen, type Awaitable, mapAll } from '../../../engine/util/awaitable.js';
import type { Rule } from '../rule.js';
import type { LevelInput } from './rule-input.js';

/**
 * The input of rules whose limits are within others. Each level determines for itself whether it counts the request; the
 * identities that the request is within are known in any case. Calls each function of a limit once.
 */
export class LeveledInput implements LevelInput {
  private readonly skipped = new Map<Rule, Awaitable<boolean>>();
  private readonly identities = new Map<Rule, Awaitable<string | undefined>>();
  private readonly costs = new Map<Rule, Awaitable<number>>();

  private readonly levels: readonly Rule[];

  constructor(
    /** The rules that are checked together. The limits they are within may have been checked before. */
    private readonly rules: readonly Rule[],
    private readonly input: LevelInput,
  ) {
    this.levels = [...new Set(rules.flatMap((rule) => [rule, ...rule.ancestors]))];
  }

  skips(rule: Rule): Awaitable<boolean> {
    return once(this.skipped, rule, () => !this.rules.includes(rule) || this.input.skips(rule));
  }

  /** The identity at a level, within those of all levels above. */
  identity(rule: Rule): Awaitable<string | undefined> {
    const own = this.ownIdentity(rule);
    if (!rule.isNested) return own;
    return andThen(own, (found) => {
      if (found === undefined) return undefined;
      const { ancestors } = rule;
      return andThen(
        mapAll(ancestors, (above) => this.ownIdentity(above)),
        (others) => rule.identityAmong((level) => (level === rule ? found : others[ancestors.indexOf(level)])),
      );
    });
  }

  /** What the request costs a level: the level's own cost, else the largest one charged directly within it, else one unit. */
  cost(rule: Rule): Awaitable<number> {
    return once(this.costs, rule, () =>
      rule.hasCost ? this.input.cost(rule) : andThen(this.chargedWithin(rule), (largest) => largest ?? 1),
    );
  }

  /** The largest cost directly within a level. A level that does not count the request passes on what is charged within it. */
  private chargedWithin(rule: Rule): Awaitable<number | undefined> {
    const within = this.levels.filter(({ ancestors }) => ancestors[0] === rule);
    const charged = mapAll(within, (each) =>
      andThen<boolean, number | undefined>(this.counts(each), (counts) =>
        counts ? this.cost(each) : this.chargedWithin(each),
      ),
    );
    return andThen(charged, (costs) => {
      const known = costs.filter((cost) => cost !== undefined);
      return known.length === 0 ? undefined : Math.max(...known);
    });
  }

  private counts(rule: Rule): Awaitable<boolean> {
    return andThen<boolean, boolean>(this.skips(rule), (skips) =>
      skips ? false : andThen(this.ownIdentity(rule), (identity) => identity !== undefined),
    );
  }

  private ownIdentity(rule: Rule): Awaitable<string | undefined> {
    return once(this.identities, rule, () => andThen(this.skips(rule), (skips) => this.input.identity(rule, !skips)));
  }
}

/** The value found for a rule before, or found now. */
function once<T>(known: Map<Rule, Awaitable<T>>, rule: Rule, find: () => Awaitable<T>): Awaitable<T> {
  const before = known.get(rule);
  if (before !== undefined || known.has(rule)) return before as Awaitable<T>;
  const found = find();
  known.set(rule, found);
  return found;
}
