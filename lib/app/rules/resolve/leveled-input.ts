import { andThen, type Awaitable, mapAll } from '../../../engine/util/awaitable.js';
import type { Rule } from '../rule.js';
import type { LevelInput } from './rule-input.js';

/**
 * The input of rules with parents or children. Each level determines for itself if it counts the request, but the identity of every level
 * is always determined. Calls each function of a limit once.
 */
export class LeveledInput implements LevelInput {
  private readonly skipped = new Map<Rule, Awaitable<boolean>>();
  private readonly identities = new Map<Rule, Awaitable<string | undefined>>();
  private readonly costs = new Map<Rule, Awaitable<number>>();

  private readonly levels: readonly Rule[];

  constructor(
    /** The rules that are checked together. Their ancestors may have been checked before. */
    private readonly rules: readonly Rule[],
    private readonly input: LevelInput,
  ) {
    this.levels = [...new Set(rules.flatMap((rule) => [rule, ...rule.ancestors]))];
  }

  skips(rule: Rule): Awaitable<boolean> {
    return once(this.skipped, rule, () => !this.rules.includes(rule) || this.input.skips(rule));
  }

  /** The identity at a level, nested in the identities of all levels above. */
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

  /** The cost of the request at a level: the level's own cost, otherwise the highest cost directly within it, otherwise one unit. */
  cost(rule: Rule): Awaitable<number> {
    return once(this.costs, rule, () =>
      rule.hasCost ? this.input.cost(rule) : andThen(this.chargedWithin(rule), (largest) => largest ?? 1),
    );
  }

  /** The highest cost directly within a level. A level that does not count the request passes on the cost within it. */
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

/** Returns the cached value for a rule, or finds it. */
function once<T>(known: Map<Rule, Awaitable<T>>, rule: Rule, find: () => Awaitable<T>): Awaitable<T> {
  const before = known.get(rule);
  if (before !== undefined || known.has(rule)) return before as Awaitable<T>;
  const found = find();
  known.set(rule, found);
  return found;
}
