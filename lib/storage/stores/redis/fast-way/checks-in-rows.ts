import type { ScriptValue } from '../../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../../engine/limits/compiled-limit.js';
import type { Check } from '../../store.js';
import { keyOf } from '../keys.js';
import { type FastChecks, isPlainCheck, limitText, type NumbersOf, operationOf } from './plain-checks.js';

/** Checks of any kind, which may have keys in common. The script decides them one after another. */
export class ChecksInRows implements FastChecks {
  readonly keys: string[] = [];
  readonly checks: Check[] = [];
  /** The numbers of limits and keys, starting at 1. */
  private readonly limits = new Map<CompiledLimit, number>();
  private readonly numbers = new Map<string, number>();
  /** The limit of each key. */
  private readonly limitOf: CompiledLimit[] = [];
  /** For each check: its operation, its number of entries, and for each entry the limit, the key and the cost. */
  private readonly rows: number[] = [];

  constructor(private readonly prefix: string) {}

  add(check: Check): boolean {
    if (!isPlainCheck(check)) return false;
    const { entries } = check;
    const { rows } = this;
    rows.push(operationOf(check), entries.length);
    const begin = rows.length;
    for (const entry of entries) {
      const { limit, cost } = entry;
      const number = this.numberOf(keyOf(this.prefix, entry), limit);
      if (number === undefined) return false;
      // Limits with the same name share counters, so a check may contain a key twice.
      for (let i = begin + 1; i < rows.length; i += 3) if (rows[i] === number) return false;
      rows.push(this.limitNumberOf(limit), number, cost);
    }
    this.checks.push(check);
    return true;
  }

  order(): undefined {
    return undefined;
  }

  args(numbersOf: NumbersOf, time: readonly ScriptValue[] | undefined): string[] {
    const limits = Array.from(this.limits.keys(), (limit) => limitText(limit, numbersOf));
    const program = `[[${limits.join(',')}],[],[${this.rows.join(',')}]]`;
    return time === undefined ? [program] : [program, `[${time.join(',')}]`];
  }

  /** The number of a key; `undefined` if the key also belongs to another limit, whose parameters differ. */
  private numberOf(key: string, limit: CompiledLimit): number | undefined {
    const known = this.numbers.get(key);
    if (known !== undefined) return this.limitOf[known - 1] === limit ? known : undefined;
    const number = this.keys.push(key);
    this.numbers.set(key, number);
    this.limitOf.push(limit);
    return number;
  }

  private limitNumberOf(limit: CompiledLimit): number {
    const known = this.limits.get(limit);
    if (known !== undefined) return known;
    this.limits.set(limit, this.limits.size + 1);
    return this.limits.size;
  }
}
