import type { ScriptValue } from '../../../../engine/algorithms/algorithm.js';
import type { CheckEntry } from '../../../../engine/limits/counter.js';
import type { Check } from '../../store.js';
import { keyOf } from '../keys.js';
import { areAlike, type FastChecks, kindText, type NumbersOf, USUAL_TIME } from './plain-checks.js';

/** Returns true if two checks of the same limits and costs have the same identities. */
function areOfSameIdentities({ entries }: Check, { entries: others }: Check): boolean {
  for (let i = 0; i < entries.length; i++) if (entries[i]!.identity !== others[i]!.identity) return false;
  return true;
}

/**
 * Checks of one kind that the script's fast way can decide: all have the same limits and costs, and rows of keys that don't overlap.
 */
export class AlikeChecks implements FastChecks {
  readonly keys: string[] = [];
  readonly checks: Check[] = [];
  private readonly keyNumbers = new Map<string, number>();
  /** The number of checks of each row, and the row of each check, once a row has more than one. */
  private times: number[] | undefined;
  private rows: number[] | undefined;
  /** True if each check so far belongs to the row of the previous one or to a later one. */
  private isInOrder = true;
  private lastRow = 0;

  constructor(private readonly prefix: string) {}

  add(check: Check): boolean {
    const { checks } = this;
    const { length } = checks;
    if (length > 0 && !areAlike(check, checks[0]!)) return false;
    // Checks of a hot key often follow each other.
    const isRepeated = length > 0 && areOfSameIdentities(check, checks[length - 1]!);
    const row = isRepeated ? this.lastRow : this.rowOf(check.entries);
    if (row === undefined) return false;
    this.isInOrder &&= row >= this.lastRow;
    this.lastRow = row;
    checks.push(check);
    if (this.times === undefined || this.rows === undefined) {
      if (row === length) return true;
      this.times = Array.from({ length }, () => 1);
      this.rows = Array.from({ length }, (_, index) => index);
    }
    this.times[row] = (this.times[row] ?? 0) + 1;
    this.rows.push(row);
    return true;
  }

  order(): readonly number[] | undefined {
    const { times, rows } = this;
    if (times === undefined || rows === undefined || this.isInOrder) return undefined;
    let before = 0;
    const next = times.map((count) => (before += count) - count);
    const order: number[] = [];
    for (const [index, row] of rows.entries()) order[next[row]!++] = index;
    return order;
  }

  args(numbersOf: NumbersOf, time: readonly ScriptValue[] | undefined): string[] {
    const program = kindText(this.checks[0]!, numbersOf);
    if (this.times === undefined && time === undefined) return [program];
    return [program, `[${[...(time ?? USUAL_TIME), ...(this.times ?? [])].join(',')}]`];
  }

  /** The row of the keys, which is created if necessary; `undefined` if another row has one of them. */
  private rowOf(entries: readonly CheckEntry[]): number | undefined {
    const { keys, keyNumbers, prefix } = this;
    const key = keyOf(prefix, entries[0]!);
    const known = keyNumbers.get(key);
    if (known === undefined) keyNumbers.set(key, keys.push(key) - 1);
    const first = known ?? keys.length - 1;
    // Limits with the same name share counters, so the first counter of this check may be another one of a row.
    if (first % entries.length !== 0) return undefined;
    for (let i = 1; i < entries.length; i++) {
      const other = keyOf(prefix, entries[i]!);
      if (keyNumbers.get(other) !== (known === undefined ? undefined : first + i)) return undefined;
      if (known === undefined) keyNumbers.set(other, keys.push(other) - 1);
    }
    return first / entries.length;
  }
}
