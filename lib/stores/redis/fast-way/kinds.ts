import type { CompiledLimit } from '../../../limits/compiled-limit.js';
import type { Check } from '../../store.js';
import { areAlike, isPlainCheck } from './plain-checks.js';

/** Checks that ask the same of the same limits. */
export interface Kind {
  readonly first: Check;
  /** Counted from 1. */
  readonly number: number;
}

/** The kinds of checks of one call. */
export class Kinds<Member extends Kind> {
  readonly all: Member[] = [];
  private readonly byLimit = new Map<CompiledLimit, Member[]>();

  constructor(private readonly make: (first: Check, number: number) => Member) {}

  /** The kind of a check, a new one if it is the first of its kind; nothing if the fast way does not know it. */
  of(check: Check): Member | undefined {
    const { limit } = check.entries[0]!;
    const ofLimit = this.byLimit.get(limit);
    const known = ofLimit?.find(({ first }) => areAlike(first, check));
    if (known !== undefined) return known;
    if (!isPlainCheck(check)) return undefined;
    const kind = this.make(check, this.all.length + 1);
    this.all.push(kind);
    if (ofLimit === undefined) this.byLimit.set(limit, [kind]);
    else ofLimit.push(kind);
    return kind;
  }
}
