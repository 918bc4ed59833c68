import { RateLimitArgumentError } from '../errors/errors.js';
import { withinMessages } from '../errors/messages/within.js';
import { assertKey } from '../limits/arguments.js';
import type { Asked, WithinOptions } from '../limits/consume-options.js';
import { type CheckEntry, type Counter, counterId } from '../limits/counter.js';
import { costOfCall } from '../rules/level-costs.js';
import type { Rule } from '../rules/rule.js';

/** A limit, or one that it is within, with the identity of its counter. */
export interface Level {
  readonly rule: Rule;
  readonly identity: string;
}

/**
 * The levels of a call from code: the limit's own, its parent's, and so on up to the root. `within`: the keys of those that it is within, by
 * their names. Throws `RateLimitArgumentError`.
 */
export function levelsOf(rule: Rule, key: unknown, within: unknown): readonly Level[] {
  assertKey(key);
  const { ancestors } = rule;
  if (ancestors.length === 0) {
    if (within !== undefined) throw new RateLimitArgumentError(withinMessages.notWithin(rule.name));
    return [{ rule, identity: key }];
  }
  const keys = readWithin(rule, ancestors, within);
  const found = (level: Rule) => (level === rule ? key : keys[level.name]);
  return [rule, ...ancestors].map((level) => ({ rule: level, identity: level.identityAmong(found) }));
}

/** The counter of a call that is of one level alone. */
export function levelCounter(rule: Rule, key: unknown, within: unknown): Counter {
  const [{ identity }] = levelsOf(rule, key, within) as [Level];
  return { limit: rule.limitFor(identity), identity };
}

/**
 * A key, and the keys of what its limit is within, of what people write as `shownIdentity` shows it: `o1/t1/u1`. Nothing if it names too
 * few, or one by its hash.
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

/** What a call asks of each level: of those without a `cost` of their own what it asks of the one within them. */
export function levelEntries(levels: readonly Level[], asked: Asked): CheckEntry[] {
  let { cost } = asked;
  return levels.map((level, index) => {
    if (index > 0) cost = costOfCall(level.rule, cost, asked);
    return entryOf(level, cost, asked);
  });
}

/** The cost of each level that such a call has. */
export function levelCosts(levels: readonly Level[], asked: Pick<Asked, 'cost' | 'hasCost'>): number[] {
  let { cost } = asked;
  return levels.map(({ rule }, index) => (index > 0 ? (cost = costOfCall(rule, cost, asked)) : cost));
}

function entryOf(
  { rule, identity }: Level,
  cost: number,
  asked: Pick<Asked, 'priority' | 'share' | 'anchor'>,
): CheckEntry {
  const rank = asked.priority ?? rule.fixedPriority;
  const limit = rule.isNested ? rule.limitFor(identity).meet({ priority: rank }) : rule.limitForCall(identity, asked);
  return { limit, identity, cost, priority: rank };
}

/** What one counter is asked by a check of several limits. */
interface Node extends Level {
  readonly asked: Asked;
  /** What the check asks of it itself. */
  readonly cost: number;
  /** The counters that are directly within it. */
  readonly within: Set<Node>;
}

/** What a check asks of one limit, at all of its levels. */
export interface LevelCheck {
  readonly levels: readonly Level[];
  readonly asked: Asked;
}

/**
 * What a check asks of the levels of several limits: those that it lists first, in their order, then all that they are within. Each
 * counter is asked once, for what is asked of all those directly within it, or for what the check asks of it itself if that is more.
 */
export function mergedEntries(checks: readonly LevelCheck[]): CheckEntry[] {
  const nodes = new Map<string, Node>();
  const put = (level: Level, asked: Asked, cost: number): Node => {
    const id = counterId(level.rule.limitFor(level.identity), level.identity);
    const node = nodes.get(id) ?? { ...level, asked, cost, within: new Set<Node>() };
    nodes.set(id, node);
    return node;
  };
  for (const { levels, asked } of checks) put(levels[0]!, asked, asked.cost);
  for (const { levels, asked } of checks) {
    let child = put(levels[0]!, asked, asked.cost);
    for (const level of levels.slice(1)) {
      const parent = put(level, asked, 0);
      parent.within.add(child);
      child = parent;
    }
  }
  return [...nodes.values()].map((node) => entryOf(node, costOf(node), node.asked));
}

function costOf({ cost, within, rule, asked }: Node): number {
  let below = 0;
  for (const each of within) below += costOf(each);
  return cost === 0 ? costOfCall(rule, below, asked) : Math.max(cost, below);
}

function readWithin(rule: Rule, ancestors: readonly Rule[], within: unknown): Readonly<Record<string, string>> {
  const names = ancestors.map(({ name }) => name);
  if (within === undefined) throw new RateLimitArgumentError(withinMessages.missingParents(rule.name, names, names));
  if (typeof within !== 'object' || within === null || Array.isArray(within)) {
    throw new RateLimitArgumentError(withinMessages.wrongWithin(rule.name, within, names));
  }
  const unknown = Object.keys(within).filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new RateLimitArgumentError(withinMessages.unknownParents(rule.name, unknown, names));
  const keys = within as Readonly<Record<string, unknown>>;
  const missing = names.filter((name) => !Object.hasOwn(keys, name) || keys[name] === undefined);
  if (missing.length > 0) throw new RateLimitArgumentError(withinMessages.missingParents(rule.name, missing, names));
  for (const name of names) {
    const key = keys[name];
    if (typeof key === 'string' && key !== '') continue;
    throw new RateLimitArgumentError(withinMessages.wrongParentKey(rule.name, name, key));
  }
  return keys as Readonly<Record<string, string>>;
}
