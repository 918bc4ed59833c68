import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { CheckEntry } from '../../limits/counter.js';
import type { Check } from '../store.js';
import { keyOf } from './keys.js';
import { CONSUME, CONSUME_REFUNDABLE, HOLD, PEEK } from './operations.js';
import type { ScriptValue } from '../../algorithms/algorithm.js';
import { PLAIN_ALGORITHMS } from './script.generated.js';

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
    features?.some(({ script }) => script !== undefined) === true ||
    limit.together !== undefined
  )
    return false;
  if (algorithm.script !== undefined || algorithm.scriptPrefix !== undefined) return false;
  if (blockFor !== 0 || carry !== undefined || !PLAIN_ALGORITHMS.includes(algorithm.name)) return false;
  return !('retain' in parameters) || parameters.retain === 0;
}

function operationOf({ peek = false, refundable = false, hold = false }: Check): number {
  return peek ? PEEK : hold ? HOLD : refundable ? CONSUME_REFUNDABLE : CONSUME;
}

/** Whether the script's fast way can decide a check. */
export function isPlainCheck({ entries, hold }: Check): boolean {
  if (hold === true) return false;
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

/** Whether two checks, which ask the same of the same limits, ask it for the same counters. */
function areOfSameIdentities({ entries }: Check, { entries: others }: Check): boolean {
  for (let i = 0; i < entries.length; i++) if (entries[i]!.identity !== others[i]!.identity) return false;
  return true;
}

/**
 * Checks that the script's fast way can decide: all of the same limits and costs, and each of a row of keys that has no key of
 * another row.
 */
export class PlainChecks {
  readonly keys: string[] = [];
  /** In the order in which they were added. */
  readonly checks: Check[] = [];
  private readonly keyNumbers = new Map<string, number>();
  /** How many checks each row has, and the row of each check, once a row has more than one. */
  private times: number[] | undefined;
  private rows: number[] | undefined;
  /** Whether each check so far belongs to the row of the last one or to a later one. */
  private isInOrder = true;
  private lastRow = 0;
  private readonly operation: number;

  private constructor(
    private readonly prefix: string,
    private readonly first: Check,
  ) {
    this.operation = operationOf(first);
  }

  /** Begins with a check; nothing if the fast way does not know it. */
  static of(check: Check, prefix: string): PlainChecks | undefined {
    if (!isPlainCheck(check)) return undefined;
    const checks = new PlainChecks(prefix, check);
    return checks.add(check) ? checks : undefined;
  }

  /** Says whether it was added: it is of these limits. */
  add(check: Check): boolean {
    if (check !== this.first && !areAlike(check, this.first)) return false;
    const { length } = this.checks;
    // A hot key follows itself.
    const isRepeated = length > 0 && areOfSameIdentities(check, this.checks[length - 1]!);
    const row = isRepeated ? this.lastRow : this.rowOf(check.entries);
    if (row === undefined) return false;
    this.isInOrder &&= row >= this.lastRow;
    this.lastRow = row;
    this.checks.push(check);
    if (this.times === undefined || this.rows === undefined) {
      if (row === length) return true;
      this.times = Array.from({ length }, () => 1);
      this.rows = Array.from({ length }, (_, index) => index);
    }
    this.times[row] = (this.times[row] ?? 0) + 1;
    this.rows.push(row);
    return true;
  }

  /** The place of each check's reply among the replies; nothing if it is that of the check. */
  order(): number[] | undefined {
    const { times, rows } = this;
    if (times === undefined || rows === undefined || this.isInOrder) return undefined;
    let before = 0;
    const places = times.map((count) => (before += count) - count);
    return rows.map((row) => places[row]!++);
  }

  /** As lua/header.lua describes them; `time` is now and the slack, if they are not the server's. */
  args(
    parametersOf: (limit: CompiledLimit) => readonly ScriptValue[],
    time: readonly ScriptValue[] | undefined,
  ): string[] {
    const { entries } = this.first;
    let program = `[${entries.length},${this.operation}`;
    for (const { limit, cost } of entries) {
      const { algorithm, shadow, quota } = limit;
      const values = parametersOf(limit);
      const more = entries.length === 1 ? '' : `,${shadow ? 1 : 0},${values.length}`;
      program += `,"${algorithm.name}",${quota},${cost}${more},${values.join(',')}`;
    }
    program += ']';
    if (this.times === undefined && time === undefined) return [program];
    return [program, `[${[...(time ?? USUAL_TIME), ...(this.times ?? [])].join(',')}]`];
  }

  /** The row of the keys, a new one unless it is there; nothing if another row has one of them. */
  private rowOf(entries: readonly CheckEntry[]): number | undefined {
    const { keys, keyNumbers, prefix } = this;
    const key = keyOf(prefix, entries[0]!);
    const known = keyNumbers.get(key);
    if (known === undefined) keyNumbers.set(key, keys.push(key) - 1);
    const first = known ?? keys.length - 1;
    // Limits of one name share counters: the first one of this check may be another one of a row.
    if (first % entries.length !== 0) return undefined;
    for (let i = 1; i < entries.length; i++) {
      const other = keyOf(prefix, entries[i]!);
      if (keyNumbers.get(other) !== (known === undefined ? undefined : first + i)) return undefined;
      if (known === undefined) keyNumbers.set(other, keys.push(other) - 1);
    }
    return first / entries.length;
  }
}
