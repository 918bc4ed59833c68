import type { CompiledLimit } from '../../../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../../../engine/limits/counter.js';
import type { Check } from '../../store.js';
import { CONSUME, CONSUME_REFUNDABLE, HOLD, PEEK, UP_TO } from '../operations.js';
import type { ScriptValue } from '../../../../engine/algorithms/algorithm.js';
import { PLAIN_ALGORITHMS } from '../script.generated.js';

/** Checks of one call that the script's fast way decides. */
export interface FastChecks {
  readonly keys: readonly string[];
  /** In the order in which they were added. */
  readonly checks: readonly Check[];
  /** Adds a check, and returns whether it fits. If not, `checks` is as before, and these checks and it have to be written another way. */
  add(check: Check): boolean;
  /** The index of each reply's check; nothing if the replies come in the order of the checks. */
  order(): readonly number[] | undefined;
  /** As lua/header.lua describes them; `time` is now and the slack, if they are not the server's. */
  args(numbersOf: NumbersOf, time: readonly ScriptValue[] | undefined): string[];
}

/** The parameters by which the script decides a limit. */
export type NumbersOf = (limit: CompiledLimit) => readonly ScriptValue[];

/** The server's own time, and how many milliseconds longer than needed a key lives: the server may stall while it decides. */
export const USUAL_TIME = [0, 1000] as const;

/** Whether the script's fast way knows a limit: asked of each check. */
const plainLimits = new WeakMap<CompiledLimit, boolean>();

function isPlain(limit: CompiledLimit): boolean {
  let plain = plainLimits.get(limit);
  if (plain === undefined) plainLimits.set(limit, (plain = isKnown(limit)));
  return plain;
}

function isKnown(limit: CompiledLimit): boolean {
  const { algorithm, parameters, blockFor, carry, features } = limit;
  if (
    limit.whole !== limit ||
    limit.countsRefused ||
    features?.some(({ script }) => script !== undefined) === true ||
    limit.together !== undefined
  )
    return false;
  if (algorithm.script !== undefined || algorithm.scriptPrefix !== undefined) return false;
  if (blockFor !== 0 || carry !== undefined || !PLAIN_ALGORITHMS.includes(algorithm.name)) return false;
  return !('retain' in parameters) || parameters.retain === 0;
}

/** The number of a check's operation in the script. */
export function operationOf({ peek = false, refundable = false, hold = false, upTo = false }: Check): number {
  if (upTo) return UP_TO;
  return peek ? PEEK : hold ? HOLD : refundable ? CONSUME_REFUNDABLE : CONSUME;
}

/** Whether the script's fast way can decide a check. */
export function isPlainCheck({ entries, hold, upTo }: Check): boolean {
  if (hold === true || upTo === true) return false;
  for (let i = 0; i < entries.length; i++) {
    const { limit, cost } = entries[i]!;
    if (cost === 0 || !isPlain(limit)) return false;
    for (let j = 0; j < i; j++) if (entries[j]!.limit === limit) return false;
  }
  return true;
}

/** Whether two checks ask the same of the same limits, so that the fast way can decide both in one call. */
export function areAlike(one: Check, other: Check): boolean {
  const { length } = one.entries;
  if (other.entries.length !== length || operationOf(one) !== operationOf(other)) return false;
  for (let i = 0; i < length; i++) {
    const { limit, cost } = one.entries[i]!;
    const entry = other.entries[i]!;
    if (limit !== entry.limit || cost !== entry.cost) return false;
  }
  return true;
}

/** What checks of a kind ask, as lua/header.lua describes it. */
export function kindText(check: Check, numbersOf: NumbersOf): string {
  const { entries } = check;
  const operation = operationOf(check);
  if (entries.length > 1) {
    const costs = entries.map(({ cost }) => cost).join(',');
    return `[${entries.length},${operation},${costs},${entries.map(({ limit }) => limitText(limit, numbersOf)).join(',')}]`;
  }
  const [{ limit, cost }] = entries as readonly [CheckEntry];
  return `[1,${operation},"${limit.algorithm.name}",${limit.quota},${cost},${numbersOf(limit).join(',')}]`;
}

/** A limit, as lua/header.lua describes it. */
export function limitText(limit: CompiledLimit, numbersOf: NumbersOf): string {
  const numbers = numbersOf(limit);
  return `"${limit.algorithm.name}",${limit.quota},${limit.shadow ? 1 : 0},${numbers.length},${numbers.join(',')}`;
}
