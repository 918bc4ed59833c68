import { argumentError } from '../../../engine/errors/errors.js';
import { withinMessages } from '../../../engine/errors/messages/calls.js';
import { isObject } from '../../../engine/options/values.js';
import { assertKey, leastImportant, type Priority } from '../../../engine/limits/arguments.js';
import type { Asked } from '../../../engine/limits/consume-options.js';
import { type CheckEntry, counterId } from '../../../engine/limits/counter.js';
import type { Call, Rule } from '../rule.js';

/**
 * A limit that code calls, or one of its ancestors, with the key that code passes for it, the identity of its counter and the cost of the
 * call at this level.
 */
export interface Level {
  readonly rule: Rule;
  readonly key: string;
  readonly identity: string;
  readonly cost: number;
}

/** The parts of a call that all levels need. `within`: the keys of the ancestors, by name. */
type LevelCall = { readonly [Member in 'cost' | 'hasCost']?: Asked[Member] | undefined } & {
  readonly within?: unknown;
};

/** The entry of a call for the limit itself. `looks`: the call only reads, and needs no anchor. */
export function callEntry(rule: Rule, identity: string, cost: number, call: Call, looks = false): CheckEntry {
  const { priority = rule.fixedPriority } = call;
  return { limit: rule.limitForCall(identity, call, looks), identity, cost, priority };
}

/**
 * The levels of a call from code: the limit itself, its parent, and so on up to the root. A level without its own `cost` is charged what
 * the level within it is charged. Throws `RateLimitArgumentError`.
 */
export function levelsOf(rule: Rule, key: unknown, call: LevelCall): readonly Level[] {
  assertKey(key);
  const { ancestors } = rule;
  const { within, cost: own = 0, hasCost = false } = call;
  if (ancestors.length === 0) {
    if (within !== undefined) throw argumentError('SLUICE_INVALID_WITHIN', withinMessages.notWithin(rule.name));
    return [{ rule, key, identity: key, cost: own }];
  }
  const keys = readWithin(rule, ancestors, within);
  const keyOf = (level: Rule) => (level === rule ? key : keys[level.name]!);
  let cost = own;
  return [rule, ...ancestors].map((level) => {
    if (level !== rule) cost = costAbove(level, cost, hasCost);
    return { rule: level, key: keyOf(level), identity: level.identityAmong(keyOf), cost };
  });
}

/** The entries of a call for a limit and all of its ancestors, its own entry first. Throws `RateLimitArgumentError`. */
export function callEntries(rule: Rule, key: string, asked: Asked, looks = false): [CheckEntry, ...CheckEntry[]] {
  const [own, ...above] = levelsOf(rule, key, asked);
  const entry = callEntry(rule, own!.identity, asked.cost, asked, looks);
  return [entry, ...above.map((level) => entryAbove(level, level.cost, priorityAt(level.rule, asked)))];
}

/** One counter in a check of several limits. */
interface Node extends Level {
  /** The calls that charge this counter: its own, if its limit is listed, or those of counters within it. */
  readonly calls: Asked[];
  readonly isListed: boolean;
  /** The counters that are directly within it. */
  readonly within: Set<Node>;
}

/** One limit in a check, with all of its levels. */
export interface LevelsCheck {
  readonly levels: readonly Level[];
  readonly asked: Asked;
}

/**
 * The entries of a check of several limits: the listed limits first, in their order, then all of their ancestors. Each counter is charged
 * once, with the sum of the charges directly within it, or with its own charge if that is higher. A level with its own cost charges that
 * cost in place of the calls within it that set none.
 */
export function mergedEntries(checks: readonly LevelsCheck[]): CheckEntry[] {
  const nodes = new Map<string, Node>();
  const put = (level: Level, asked: Asked, isListed: boolean): Node => {
    const id = counterId(level.rule.limitFor(level.identity), level.identity);
    const node = nodes.get(id) ?? { ...level, calls: [], isListed, within: new Set<Node>() };
    nodes.set(id, node);
    if (node.isListed === isListed) node.calls.push(asked);
    return node;
  };
  const listed = checks.map(({ levels, asked }) => put(levels[0]!, asked, true));
  for (const [index, { levels, asked }] of checks.entries()) {
    let child = listed[index]!;
    for (const level of levels.slice(1)) {
      const parent = put(level, asked, false);
      parent.within.add(child);
      child = parent;
    }
  }
  return [...nodes.values()].map((node) =>
    node.isListed
      ? callEntry(node.rule, node.identity, costOf(node).total, node.calls[0]!)
      : entryAbove(node, costOf(node).total, leastImportant(node.calls.map((call) => priorityAt(node.rule, call)))),
  );
}

/** The total cost for a counter, and the part of it that calls have set explicitly. That part applies even if a level has its own cost. */
function costOf({ isListed, cost, within, rule, calls }: Node): { readonly total: number; readonly set: number } {
  let below = 0;
  let set = 0;
  for (const each of within) {
    const asked = costOf(each);
    below += asked.total;
    set += asked.set;
  }
  if (isListed && cost > 0) {
    const total = Math.max(cost, below);
    return { total, set: calls[0]!.hasCost ? total : Math.min(set, total) };
  }
  const others = calls.every(({ hasCost }) => hasCost) ? below - set : costAbove(rule, below - set, false);
  return { total: set + others, set };
}

/** The cost of a call at a level: the level's own cost, unless the call sets one; otherwise the cost within the level. */
function costAbove(rule: Rule, within: number, hasCost: boolean): number {
  return rule.hasCost && !hasCost ? rule.fixedCost : within;
}

/** The entry for an ancestor. */
function entryAbove({ rule, identity }: Level, cost: number, priority: Priority | undefined): CheckEntry {
  return { limit: rule.limitFor(identity).meet({ priority }), identity, cost, priority };
}

/** The priority of a call at a level. A call that sets none uses the level's own. */
function priorityAt(rule: Rule, { hasPriority, priority }: Asked): Priority | undefined {
  return hasPriority ? priority : rule.fixedPriority;
}

function readWithin(rule: Rule, ancestors: readonly Rule[], within: unknown): Readonly<Record<string, string>> {
  const names = ancestors.map(({ name }) => name);
  const problem = problemOfWithin(rule.name, names, within);
  if (problem !== undefined) throw argumentError('SLUICE_INVALID_WITHIN', problem);
  return within as Readonly<Record<string, string>>;
}

/** The reason why a value isn't the keys of these ancestors. */
function problemOfWithin(limit: string, names: readonly string[], within: unknown): string | undefined {
  if (within === undefined) return withinMessages.missingParents(limit, names, names);
  if (!isObject(within)) return withinMessages.wrongWithin(limit, within, names);
  const unknown = Object.keys(within).filter((name) => !names.includes(name));
  if (unknown.length > 0) return withinMessages.unknownParents(limit, unknown, names);
  const missing = names.filter((name) => !Object.hasOwn(within, name) || within[name] === undefined);
  if (missing.length > 0) return withinMessages.missingParents(limit, missing, names);
  const wrong = names.find((name) => typeof within[name] !== 'string' || within[name] === '');
  return wrong === undefined ? undefined : withinMessages.wrongParentKey(limit, wrong, within[wrong]);
}
