import type { CompiledLimit } from '../../../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../../../engine/limits/counter.js';
import type { Check } from '../../store.js';
import { CONSUME, CONSUME_REFUNDABLE, HOLD, PEEK, UP_TO } from '../operations.js';
import type { ScriptValue } from '../../../../engine/algorithms/algorithm.js';
import { PLAIN_ALGORITHMS } from './plain-algorithms.generated.js';

/** The checks of one call that the script's fast way decides. */
export interface FastChecks {
  readonly keys: readonly string[];
  /** The checks in the order in which they were added. */
  readonly checks: readonly Check[];
  /** Adds a check and returns true if it fits. If not, `checks` is unchanged, and all of them have to be written in another way. */
  add(check: Check): boolean;
  /** The index of each reply's check; `undefined` if the replies are in the order of the checks. */
  order(): readonly number[] | undefined;
  /** The arguments as described in lua/header.lua. `time` is the current time and the slack, unless the server's are used. */
  args(numbersOf: NumbersOf, time: readonly ScriptValue[] | undefined): string[];
}

/** The parameters that the script uses to decide a limit. */
export type NumbersOf = (limit: CompiledLimit) => readonly ScriptValue[];

/** The server's own time, and the additional milliseconds that a key lives because the server may stall while it decides. */
export const USUAL_TIME = [0, 1000] as const;

/** True for limits that the script's fast way supports. Cached, because each check looks it up. */
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

/** Returns true if the script's fast way can decide a check. */
export function isPlainCheck({ entries, hold, upTo }: Check): boolean {
  if (hold === true || upTo === true) return false;
  for (let i = 0; i < entries.length; i++) {
    const { limit, cost } = entries[i]!;
    if (cost === 0 || !isPlain(limit)) return false;
    for (let j = 0; j < i; j++) if (entries[j]!.limit === limit) return false;
  }
  return true;
}

/** Returns true if two checks have the same limits, costs and options, so that the fast way can decide both in one call. */
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

/** A kind of checks, in the format of lua/header.lua. */
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

/** A limit, in the format of lua/header.lua. */
export function limitText(limit: CompiledLimit, numbersOf: NumbersOf): string {
  const numbers = numbersOf(limit);
  return `"${limit.algorithm.name}",${limit.quota},${limit.shadow ? 1 : 0},${numbers.length},${numbers.join(',')}`;
}
