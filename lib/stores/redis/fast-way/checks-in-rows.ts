import type { ScriptValue } from '../../../algorithms/algorithm.js';
import type { CompiledLimit } from '../../../limits/compiled-limit.js';
import type { Check } from '../../store.js';
import { keyOf } from '../keys.js';
import { type Kind, Kinds } from './kinds.js';
import { type FastChecks, kindText, type NumbersOf } from './plain-checks.js';

/** Checks of any kinds, which may have keys in common: the script decides one after another. */
export class ChecksInRows implements FastChecks {
  readonly keys: string[] = [];
  readonly checks: Check[] = [];
  private readonly kinds = new Kinds<Kind>((first, number) => ({ first, number }));
  private readonly numbers = new Map<string, number>();
  /** The limit of each key. */
  private readonly limits: CompiledLimit[] = [];
  /** The kind of each check, and the numbers of its keys. */
  private readonly rows: number[] = [];

  constructor(private readonly prefix: string) {}

  add(check: Check): boolean {
    const { rows, keys, limits } = this;
    const kind = this.kinds.of(check);
    if (kind === undefined) return false;
    rows.push(kind.number);
    const begin = rows.length;
    for (const entry of check.entries) {
      const key = keyOf(this.prefix, entry);
      let number = this.numbers.get(key);
      if (number === undefined) {
        number = keys.push(key);
        this.numbers.set(key, number);
        limits.push(entry.limit);
        // Limits of one name share counters, which each reads by its own parameters.
      } else if (limits[number - 1] !== entry.limit || rows.includes(number, begin)) return false;
      rows.push(number);
    }
    this.checks.push(check);
    return true;
  }

  order(): undefined {
    return undefined;
  }

  args(numbersOf: NumbersOf, time: readonly ScriptValue[] | undefined): string[] {
    const kinds = this.kinds.all.map(({ first }) => kindText(first, numbersOf, true));
    const program = `[[${kinds.join(',')}],[],[${this.rows.join(',')}]]`;
    return time === undefined ? [program] : [program, `[${time.join(',')}]`];
  }
}
