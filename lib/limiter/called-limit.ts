import { assertKey, assertUnits } from '../limits/arguments.js';
import { type Asked, type CorrectionOptions, readCorrection, readWithinOption } from '../limits/consume-options.js';
import type { Counter } from '../limits/counter.js';
import { assertPossibleKey } from '../rules/possible-keys.js';
import type { Rule } from '../rules/rule.js';
import type { Charge, Store } from '../stores/store.js';
import { type Level, levelCounter, levelsOf } from './levels.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/** A limit that code calls. */
export interface CalledLimit {
  readonly name: string;
  readonly rule: Rule;
  /** Where its counters live. */
  readonly store: Store;
  /** Those who wait for its units in this process. */
  readonly queues: WaitQueues;
}

/** Whether a limit is within others, so that a call says which. */
export function isNested({ rule }: CalledLimit, within: unknown): boolean {
  return within !== undefined || rule.isNested;
}

/** The counter of a key, all of it. */
export function wholeCounter({ rule }: CalledLimit, key: string): Counter {
  assertKey(key);
  return { limit: rule.limitFor(key), identity: key };
}

/** The counter of a key that people or code name, and no request: one that the limit can have. */
export function namedCounter(limit: CalledLimit, key: string): Counter {
  const counter = wholeCounter(limit, key);
  assertPossibleKey(limit.rule, key);
  return counter;
}

/** The counter of a key, as calls of a priority, or for a tenant, meet it. */
export function metCounter({ rule }: CalledLimit, key: string, asked: Asked): Counter {
  assertKey(key);
  return { limit: rule.limitForCall(key, asked), identity: key };
}

/** The counter of the limit itself, for what is done to it alone. */
export function ownCounter(limit: CalledLimit, key: string, options: unknown): Counter {
  const within = readWithinOption(options);
  return isNested(limit, within) ? levelCounter(limit.rule, key, within) : wholeCounter(limit, key);
}

/** The same of a key that the limit can have, and all that it is within. */
export function ownNamedCounter(limit: CalledLimit, key: string, options: unknown): Counter {
  const within = readWithinOption(options);
  return isNested(limit, within) ? possibleLevels(limit.rule, key, within)[0]! : namedCounter(limit, key);
}

/** The counters of all levels of a key that can be one. */
function possibleLevels(rule: Rule, key: string, within: unknown): readonly Counter[] {
  const levels = levelsOf(rule, key, within);
  for (const level of levels) {
    const own = level.rule === rule ? key : (within as Readonly<Record<string, string>>)[level.rule.name]!;
    assertPossibleKey(level.rule, own);
  }
  return countersOf(levels);
}

function countersOf(levels: readonly Level[]): readonly Counter[] {
  return levels.map((level) => ({ limit: level.rule.limitFor(level.identity), identity: level.identity }));
}

/**
 * What corrects the counters of all levels by so many units, as a tenant meets them if one is named. `undoes`: what code itself has
 * taken, under whatever key it did so, unless an operator gives it back.
 */
export function corrections(
  limit: CalledLimit,
  key: string,
  units: number,
  options: CorrectionOptions | undefined,
  undoes = false,
): readonly Charge[] {
  assertKey(key);
  const { share, within, strict } = readCorrection(options);
  assertUnits(units);
  const { rule } = limit;
  const isNamed = !undoes || strict === true;
  if (isNested(limit, within)) {
    const levels = isNamed ? possibleLevels(rule, key, within) : countersOf(levelsOf(rule, key, within));
    return levels.map((counter) => ({ ...counter, units, strict }));
  }
  if (isNamed) assertPossibleKey(rule, key);
  const { limit: own } = share === undefined ? wholeCounter(limit, key) : { limit: rule.limitForTenant(key, share) };
  return [{ limit: own, identity: key, units, strict }];
}
