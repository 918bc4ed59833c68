import { type Counter, isOfStarts } from '../../../engine/limits/counter.js';
import { creditsKeyOf, extraKeysOf, hashTagOf, keyOf } from './keys.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';

const NONE: readonly string[] = [];

/** The keys of a program, each once. The program refers to them by their numbers. */
export class ProgramKeys {
  readonly all: string[] = [];
  private readonly numbers = new Map<string, number>();
  /** Keys whose counters stay open until the end of the call, because more than one check or operation uses them. */
  private readonly keptOpen: boolean[] = [];
  private openKeys = '';
  private openKeyCount = 0;
  /** Further keys and texts of counters, by the number of the counter's key and by name. */
  private readonly beside = new Map<string, string>();

  constructor(private readonly prefix: string) {}

  /** The number of a counter's key. The keys of its credits and features follow it. */
  ofCounter(counter: Counter): number {
    const key = keyOf(this.prefix, counter);
    const known = this.numbers.get(key);
    if (known !== undefined) {
      this.keepOpen(known);
      // A limit without features, or another version, may have come first.
      this.declareBeside(key, counter, known);
      return known;
    }
    const number = this.all.push(key);
    this.numbers.set(key, number);
    if (counter.limit.algorithm.extraKeys !== undefined) this.all.push(...extraKeysOf(key, counter));
    this.declareBeside(key, counter, number);
    return number;
  }

  /** The number of a key that isn't a counter's. */
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

  /** The counters that stay open, in the format of the program. */
  get open(): string {
    return `${this.openKeyCount}${this.openKeys}`;
  }

  /** The keys declared with counters, in the format of the program. */
  get allBeside(): string {
    return this.beside.size === 0 ? '0' : [this.beside.size, ...this.beside.values()].join(',');
  }

  /** Declares the other keys of a counter: those of its credits, of its features and of its algorithm. */
  private declareBeside(key: string, counter: Counter, number: number): void {
    const { algorithm, parameters, features, takesCredits } = counter.limit;
    if (takesCredits) this.declare(number, 'credits', creditsKeyOf(this.prefix, counter));
    if (algorithm.moreKeys !== undefined) {
      for (const end of algorithm.moreKeys(parameters)) this.declare(number, end, `${key}:${end}`);
    }
    if (features === undefined) return;
    for (const { script } of features) {
      for (const end of script?.ends ?? NONE) this.declare(number, end, `${key}:${end}`);
    }
    if (isOfStarts(counter)) return;
    for (const { name, script } of features) {
      const id = `${number},"${name}"`;
      if (script?.beside === undefined || this.beside.has(id)) continue;
      const { keys, texts } = script.beside(this.prefix, hashTagOf(counter));
      const values = [...keys.map((each) => this.of(each)), ...texts.map((text) => JSON.stringify(text))];
      this.beside.set(id, [id, values.length, ...values].join(','));
    }
  }

  /** Declares a key that the script finds by its suffix. */
  private declare(number: number, end: string, key: string): void {
    const id = `${number},":${end}"`;
    if (!this.beside.has(id)) this.beside.set(id, `${id},1,${this.of(key)}`);
  }
}

/** The prefix of the algorithm's name for limits with features. */
const FEATURED = '@';
/** Flags of a limit, in one number. */
const SHADOW = 1;
const STRIKES = 2;
const COUNTS_REFUSED = 4;
const CARRY = { proportional: 1, additive: 2 } as const;

/** The limits of a program, each once. The program refers to them by their numbers. */
export class ProgramLimits {
  private readonly numbers = new Map<CompiledLimit, number>();
  private written = '';

  /** `now` is the best guess of the server's time in microseconds. */
  constructor(private readonly now: number) {}

  /** The number of a limit. */
  of(limit: CompiledLimit): number {
    const known = this.numbers.get(limit);
    if (known !== undefined) return known;
    const { algorithm, parameters, shadow, strikes, countsRefused, blockFor, escalation, carry, features } = limit;
    const values = algorithm.scriptParameters(parameters, this.now);
    // One value more than the parameters is the whole quota.
    if (limit.whole !== limit) values.push(limit.whole.quota);
    let count = 0;
    let ofFeatures = '';
    for (const { name, script } of features ?? []) {
      if (script === undefined) continue;
      count++;
      ofFeatures += `,"${name}",${script.numbers(this.now).join(',')}`;
    }
    const prefix = count === 0 ? '' : FEATURED;
    const name = `"${prefix}${algorithm.scriptPrefix ?? ''}${algorithm.script ?? algorithm.name}"`;
    const common = [
      name,
      (shadow ? SHADOW : 0) + (strikes ? STRIKES : 0) + (countsRefused ? COUNTS_REFUSED : 0),
      parameters.quota,
      escalation === undefined ? blockFor : -escalation.steps.length,
      carry === undefined ? 0 : CARRY[carry.mode],
      carry?.quotaBefore ?? 0,
    ];
    this.written += `,${[...common, values.length, ...values].join(',')}`;
    if (escalation !== undefined) this.written += `,${escalation.forgetAfter},${escalation.steps.join(',')}`;
    if (count > 0) this.written += `,${count}${ofFeatures}`;
    const number = this.numbers.size + 1;
    this.numbers.set(limit, number);
    return number;
  }

  /** All limits, in the format of the program. */
  get all(): string {
    return `${this.numbers.size}${this.written}`;
  }
}
