import type { ScriptValue } from '../../../algorithms/algorithm.js';
import type { Check } from '../../store.js';
import { keyOf } from '../keys.js';
import { type Kind, Kinds } from './kinds.js';
import { type FastChecks, kindText, type NumbersOf, USUAL_TIME } from './plain-checks.js';

/** Checks of a kind, by their keys. */
interface Group extends Kind {
  readonly keys: Key[];
}

interface Key {
  readonly group: Group;
  readonly key: string;
  /** The indices of the checks that have it. */
  readonly checks: number[];
}

/** Checks of several kinds, each of one limit, and none of a key of another kind: the script decides kind after kind. */
export class GroupedChecks implements FastChecks {
  readonly checks: Check[] = [];
  private readonly known = new Map<string, Key>();
  private readonly groups = new Kinds<Group>((first, number) => ({ first, number, keys: [] }));

  constructor(private readonly prefix: string) {}

  get keys(): readonly string[] {
    return this.inOrder().map(({ key }) => key);
  }

  add(check: Check): boolean {
    const { entries } = check;
    if (entries.length !== 1) return false;
    const group = this.groups.of(check);
    if (group === undefined) return false;
    const key = keyOf(this.prefix, entries[0]!);
    let known = this.known.get(key);
    if (known === undefined) {
      known = { group, key, checks: [] };
      this.known.set(key, known);
      group.keys.push(known);
    } else if (known.group !== group) return false;
    known.checks.push(this.checks.push(check) - 1);
    return true;
  }

  order(): readonly number[] {
    return this.inOrder().flatMap(({ checks }) => checks);
  }

  args(numbersOf: NumbersOf, time: readonly ScriptValue[] | undefined): string[] {
    const { all } = this.groups;
    const kinds = all.map(({ first }) => kindText(first, numbersOf));
    const program = `[[${kinds.join(',')}],[${all.map(({ keys }) => keys.length).join(',')}]]`;
    const repeats = this.known.size < this.checks.length;
    if (!repeats && time === undefined) return [program];
    const times = repeats ? this.inOrder().map(({ checks }) => checks.length) : [];
    return [program, `[${[...(time ?? USUAL_TIME), ...times].join(',')}]`];
  }

  private inOrder(): Key[] {
    return this.groups.all.flatMap(({ keys }) => keys);
  }
}
