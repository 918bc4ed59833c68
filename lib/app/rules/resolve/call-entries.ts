import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import { withinMessages } from '../../../engine/errors/messages/within.js';
import { assertKey } from '../../../engine/limits/arguments.js';
import type { Asked } from '../../../engine/limits/consume-options.js';
import { type CheckEntry, counterId } from '../../../engine/limits/counter.js';
import { leastImportant } from '../../../engine/limits/priority.js';
import type { Call, Rule } from '../rule.js';

/**
 * A limit that code calls, or one it is within: the key that code names for it, its counter's identity, and what the call costs
 * it.
 */
export interface Level {
  readonly rule: Rule;
  readonly key: string;
  readonly identity: string;
  readonly cost: number;
}

/** The part of a call that matters to all levels. `within`: the keys of the limits above, by name. */
type LevelCall = { readonly [Member in 'cost' | 'hasCost']?: Asked[Member] | undefined } & {
  readonly within?: unknown;
};

/** What code asks of a limit itself. `looks`: it only looks, and needs no anchor. */
export function callEntry(rule: Rule, identity: string, cost: number, call: Call, looks = false): CheckEntry {
  const { priority = rule.fixedPriority } = call;
  return { limit: rule.limitForCall(identity, call, looks), identity, cost, priority };
}

/**
 * The levels of a call from code: the limit's own, its parent's, and so on up to the root. Levels without a `cost` of their own
 * cost what the one within them does. Throws `RateLimitArgumentError`.
 */
export function levelsOf(rule: Rule, key: unknown, call: LevelCall): readonly Level[] {
  assertKey(key);
  const { ancestors } = rule;
  const { within, cost: own = 0, hasCost = false } = call;
  if (ancestors.length === 0) {
    if (within !== undefined)
      throw new RateLimitArgumentError(withinMessages.notWithin(rule.name), { code: 'SLUICE_INVALID_WITHIN' });
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

/** What code asks of a limit and of all limits it is within, its own entry first. Throws `RateLimitArgumentError`. */
export function callEntries(rule: Rule, key: string, asked: Asked, looks = false): [CheckEntry, ...CheckEntry[]] {
  const [own, ...above] = levelsOf(rule, key, asked);
  const entry = callEntry(rule, own!.identity, asked.cost, asked, looks);
  return [entry, ...above.map((level) => entryAbove(level, level.cost, [asked]))];
}

/** What a check of several limits asks of one counter. */
interface Node extends Level {
  /** Of the calls that ask it: its own, if the check lists its limit, or those within it. */
  readonly calls: Asked[];
  /** Whether the check lists its limit. */
  readonly isListed: boolean;
  /** The counters that are directly within it. */
  readonly within: Set<Node>;
}

/** What a check asks of one limit, at all of its levels. */
export interface LevelsCheck {
  readonly levels: readonly Level[];
  readonly asked: Asked;
}

/**
 * What a check asks of the levels of several limits: those it lists first, in their order, then all limits they are within. Each
 * counter is asked once: for the sum of what is asked of the counters directly within it, or for what the check asks of it
 * directly, if that is more. A level's own cost replaces what the calls within it cost that set none.
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
      : entryAbove(node, costOf(node).total, node.calls),
  );
}

/** What a counter is asked for, and how much of that calls have set: it counts in place of a level's own cost. */
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

/** What a call costs a level: the level's own cost, unless the call sets one; else what is charged within it. */
function costAbove(rule: Rule, within: number, hasCost: boolean): number {
  return rule.hasCost && !hasCost ? rule.fixedCost : within;
}

/** What calls ask of a limit above their own, which has its own priority for those that set none. */
function entryAbove({ rule, identity }: Level, cost: number, calls: readonly Asked[]): CheckEntry {
  const priority = leastImportant(calls.map((call) => (call.hasPriority ? call.priority : rule.fixedPriority)));
  return { limit: rule.limitFor(identity).meet({ priority }), identity, cost, priority };
}

function readWithin(rule: Rule, ancestors: readonly Rule[], within: unknown): Readonly<Record<string, string>> {
  const names = ancestors.map(({ name }) => name);
  if (within === undefined)
    throw new RateLimitArgumentError(withinMessages.missingParents(rule.name, names, names), {
      code: 'SLUICE_INVALID_WITHIN',
    });
  if (typeof within !== 'object' || within === null || Array.isArray(within)) {
    throw new RateLimitArgumentError(withinMessages.wrongWithin(rule.name, within, names), {
      code: 'SLUICE_INVALID_WITHIN',
    });
  }
  const unknown = Object.keys(within).filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw new RateLimitArgumentError(withinMessages.unknownParents(rule.name, unknown, names), {
      code: 'SLUICE_INVALID_WITHIN',
    });
  const keys = within as Readonly<Record<string, unknown>>;
  const missing = names.filter((name) => !Object.hasOwn(keys, name) || keys[name] === undefined);
  if (missing.length > 0)
    throw new RateLimitArgumentError(withinMessages.missingParents(rule.name, missing, names), {
      code: 'SLUICE_INVALID_WITHIN',
    });
  for (const name of names) {
    const key = keys[name];
    if (typeof key === 'string' && key !== '') continue;
    throw new RateLimitArgumentError(withinMessages.wrongParentKey(rule.name, name, key), {
      code: 'SLUICE_INVALID_WITHIN',
    });
  }
  return keys as Readonly<Record<string, string>>;
}
