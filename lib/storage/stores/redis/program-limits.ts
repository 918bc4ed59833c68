import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';

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
    ];
    common.push(escalation === undefined ? blockFor : -escalation.steps.length);
    common.push(carry === undefined ? 0 : CARRY[carry.mode], carry?.quotaBefore ?? 0);
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
