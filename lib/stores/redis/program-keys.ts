import { type Counter, isOfStarts } from '../../limits/counter.js';
import {
  creditsKeyOf,
  extraKeysOf,
  hashTagOf,
  holdsKeyOf,
  keyOf,
  recordIndexKey,
  recordKeyOf,
  shareKeyOf,
} from './keys.js';
import { tagBeside } from './slot-tags.js';

/** The keys of a program, each once: it names them by their numbers. */
export class ProgramKeys {
  readonly all: string[] = [];
  private readonly numbers = new Map<string, number>();
  /** Keys whose counters stay open until the end of the call: more than one check or operation has them. */
  private readonly keptOpen: boolean[] = [];
  private openKeys = '';
  private openKeyCount = 0;
  /** Where counters of limits with `usage` are recorded, by their numbers. */
  private recorded: Map<number, string> | undefined;

  constructor(private readonly prefix: string) {}

  /** The number of a counter's key, behind which are those of what is beside the counter. */
  ofCounter(counter: Counter): number {
    const key = keyOf(this.prefix, counter);
    const known = this.numbers.get(key);
    if (known !== undefined) {
      this.keepOpen(known);
      // A limit without holds, or another tenant's, may have come first.
      this.declareBeside(key, counter, known);
      return known;
    }
    const number = this.all.push(key);
    this.numbers.set(key, number);
    if (counter.limit.algorithm.extraKeys !== undefined) this.all.push(...extraKeysOf(key, counter));
    this.declareBeside(key, counter, number);
    return number;
  }

  /** The number of a key that holds no counter. */
  of(key: string): number {
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    const number = this.all.push(key);
    this.numbers.set(key, number);
    return number;
  }

  keepOpen(number: number): void {
    if (this.keptOpen[number] === true) return;
    this.keptOpen[number] = true;
    this.openKeys += `,${number}`;
    this.openKeyCount++;
  }

  /** Those that stay open, as the program has them. */
  get open(): string {
    return `${this.openKeyCount}${this.openKeys}`;
  }

  /** Where counters are recorded, as a program has it of which a limit has `usage`. */
  get records(): string {
    const records = this.recorded?.values() ?? [];
    return [this.recorded?.size ?? 0, ...records].join(',');
  }

  /** What is held of a counter has a key of its own beside it, and so have each of its tenants, its credits and what it was charged. */
  private declareBeside(key: string, counter: Counter, number: number): void {
    const { hold, tenant, usage, takesCredits } = counter.limit;
    if (takesCredits) this.of(creditsKeyOf(this.prefix, counter));
    if (hold !== undefined) this.of(holdsKeyOf(key));
    if (tenant !== undefined) this.of(shareKeyOf(key, tenant));
    if (usage === undefined || isOfStarts(counter) || this.recorded?.has(number) === true) return;
    const tag = hashTagOf(counter);
    const record = this.of(recordKeyOf(this.prefix, counter));
    const index = this.of(recordIndexKey(this.prefix, counter.limit, tagBeside(tag)));
    this.recorded ??= new Map();
    this.recorded.set(number, `${number},${record},${index},${JSON.stringify(tag)}`);
  }
}
