import type { ScriptValue } from '../../../../engine/algorithms/algorithm.js';
import type { CompiledLimit } from '../../../../engine/limits/compiled-limit.js';
import type { Check } from '../../store.js';
import { keyOf } from '../keys.js';
import { areAlike, type FastChecks, isPlainCheck, kindText, type NumbersOf, USUAL_TIME } from './plain-checks.js';

/** Checks with the same limit and cost, by their keys. */
interface Kind {
  readonly first: Check;
  readonly keys: Key[];
}

interface Key {
  readonly kind: Kind;
  readonly key: string;
  /** The indices of the checks of this kind. */
  readonly checks: number[];
}

/** Checks of several kinds. Each kind has one limit, and no key is in two kinds. The script decides one kind after another. */
export class GroupedChecks implements FastChecks {
  readonly checks: Check[] = [];
  private readonly known = new Map<string, Key>();
  private readonly kinds: Kind[] = [];
  private readonly kindsOf = new Map<CompiledLimit, Kind[]>();
  private sorted: Key[] | undefined;

  constructor(private readonly prefix: string) {}

  get keys(): readonly string[] {
    return this.inOrder().map(({ key }) => key);
  }

  add(check: Check): boolean {
    const { entries } = check;
    if (entries.length !== 1) return false;
    const kind = this.kindOf(check);
    if (kind === undefined) return false;
    const key = keyOf(this.prefix, entries[0]!);
    let known = this.known.get(key);
    if (known === undefined) {
      known = { kind, key, checks: [] };
      this.known.set(key, known);
      kind.keys.push(known);
    } else if (known.kind !== kind) return false;
    known.checks.push(this.checks.push(check) - 1);
    this.sorted = undefined;
    return true;
  }

  order(): readonly number[] {
    return this.inOrder().flatMap(({ checks }) => checks);
  }

  args(numbersOf: NumbersOf, time: readonly ScriptValue[] | undefined): string[] {
    const { kinds } = this;
    const texts = kinds.map(({ first }) => kindText(first, numbersOf));
    const program = `[[${texts.join(',')}],[${kinds.map(({ keys }) => keys.length).join(',')}]]`;
    const repeats = this.known.size < this.checks.length;
    if (!repeats && time === undefined) return [program];
    const times = repeats ? this.inOrder().map(({ checks }) => checks.length) : [];
    return [program, `[${[...(time ?? USUAL_TIME), ...times].join(',')}]`];
  }

  /** The kind of a check, which is created if it is the first of its kind; `undefined` if the fast way doesn't support it. */
  private kindOf(check: Check): Kind | undefined {
    const { limit } = check.entries[0]!;
    const ofLimit = this.kindsOf.get(limit);
    const known = ofLimit?.find(({ first }) => areAlike(first, check));
    if (known !== undefined) return known;
    if (!isPlainCheck(check)) return undefined;
    const kind = { first: check, keys: [] };
    this.kinds.push(kind);
    if (ofLimit === undefined) this.kindsOf.set(limit, [kind]);
    else ofLimit.push(kind);
    return kind;
  }

  /** The keys of one kind after another. */
  private inOrder(): readonly Key[] {
    return (this.sorted ??= this.kinds.flatMap(({ keys }) => keys));
  }
}
