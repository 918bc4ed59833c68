import { hashedHeader } from '../app/key-resolvers/header.js';
import { DURATION_UNITS, isObject, milliseconds } from '../engine/options/values.js';
import { consoleMessages } from '../engine/errors/messages/console.js';
import { CAUSE_EXPECTED, isCauseText } from '../app/overrides/change-options.js';
import type { FieldError } from './api.js';
import { ConsoleProblem, wrongFields } from './problem.js';

/** Maximum length of an identity to look up, in characters. */
const LONGEST_IDENTITY = 1024;
const DURATION_EXPECTED = `milliseconds or a duration such as '15m' ${DURATION_UNITS}, more than 0 and at most 1 year`;

/** Reads the fields of a request, and collects their errors. */
export class Fields {
  private readonly errors: FieldError[] = [];

  private constructor(
    private readonly given: ReadonlyMap<string, unknown>,
    known: readonly string[],
  ) {
    for (const field of given.keys()) {
      if (!known.includes(field)) this.refuse(field, consoleMessages.unknownField(known));
    }
  }

  static ofBody(body: unknown, ...known: readonly string[]): Fields {
    if (!isObject(body) || Buffer.isBuffer(body)) throw new ConsoleProblem(400, consoleMessages.noFields(body));
    return new Fields(new Map(Object.entries(body)), known);
  }

  static ofQuery(query: unknown, ...known: readonly string[]): Fields {
    return new Fields(new Map(Object.entries(query ?? {})), known);
  }

  text(field: string, expected: string, isValid: (value: string) => boolean = () => true): string {
    return this.read(field, expected, (value) => typeof value === 'string' && value !== '' && isValid(value), '');
  }

  /** An identity. For a limit with a header as key, the header's value is also accepted: `header:x-api-key:<value>`. */
  identity(): string {
    const expected = `an identity such as 'user:42', of at most ${LONGEST_IDENTITY} characters`;
    return hashedHeader(this.text('identity', expected, (value) => value.length <= LONGEST_IDENTITY));
  }

  reason(): string {
    return this.read('reason', CAUSE_EXPECTED, (value) => isCauseText(value) && value.trim() !== '', '');
  }

  duration(field: string): string | number {
    return this.read(field, DURATION_EXPECTED, (value) => (milliseconds(value) ?? 0) > 0, 0);
  }

  whole(field: string, min: number): number {
    const isValid = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= min;
    return this.read(field, `a whole number >= ${min}`, isValid, 0);
  }

  oneOf<const T extends string>(field: string, words: readonly T[]): T {
    return this.read(field, `one of ${words.join(', ')}`, (value) => words.includes(value as T), words[0]!);
  }

  /** An object of options, in the form that a change of a rate takes. */
  patch(): Record<string, unknown> {
    return this.read('patch', 'an object of options such as { "rate": 50 }', isObject, {});
  }

  optional<T>(field: string, read: (field: string) => T): T | undefined {
    const value = this.given.get(field);
    return value === undefined || value === null ? undefined : read(field);
  }

  has(field: string): boolean {
    return this.given.get(field) !== undefined;
  }

  /** Records a problem with a field; only the first one of each field is reported. */
  refuse(field: string, message: string): void {
    if (!this.errors.some((error) => error.field === field)) this.errors.push({ field, message });
  }

  /** Throws if any field is invalid. */
  check(): void {
    if (this.errors.length > 0) throw wrongFields(this.errors);
  }

  private read<T>(field: string, expected: string, isValid: (value: unknown) => boolean, otherwise: T): T {
    const value = this.given.get(field);
    if (value === undefined) this.refuse(field, consoleMessages.missingField(expected));
    else if (!isValid(value)) this.refuse(field, consoleMessages.wrongField(value, expected));
    else return value as T;
    return otherwise;
  }
}
