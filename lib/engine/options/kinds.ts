import type { JsonSchema, OptionKind, OptionRows } from './option-row.js';
import { isCallable } from '../util/objects.js';
import { DURATION_FORM, DURATION_UNITS, isObject, MAX_INTERVAL_MS, microseconds } from './values.js';

/** Whole numbers. */
export function whole(min = 1, max = Number.MAX_SAFE_INTEGER): OptionKind<number> {
  const isBounded = max < Number.MAX_SAFE_INTEGER;
  return {
    expected: `a whole number >= ${min}${isBounded ? ` and <= ${max}` : ''}`,
    isValid: (value) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
    schema: { type: 'integer', minimum: min, maximum: max },
  };
}

/** Numbers within the bounds of a JSON Schema: `minimum`, `exclusiveMinimum`, `maximum`, `exclusiveMaximum`. */
export function number(expected: string, bounds: Readonly<Record<string, number>>): OptionKind<number> {
  const { minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity, exclusiveMaximum = Infinity } = bounds;
  return {
    expected,
    isValid: (value) =>
      typeof value === 'number' &&
      value >= minimum &&
      value > exclusiveMinimum &&
      value <= maximum &&
      value < exclusiveMaximum,
    schema: { type: 'number', ...bounds },
  };
}

/** A share of something, up to all of it. */
export const fraction = number('a number > 0 and <= 1', { exclusiveMinimum: 0, maximum: 1 });

/** One word of a list. */
export function words<const Word extends string>(list: readonly Word[]): OptionKind<Word> {
  return {
    expected: `one of ${list.join(', ')}`,
    isValid: (value) => list.includes(value as Word),
    schema: { enum: list },
  };
}

const TEXT_OF_TIME: JsonSchema = { type: 'string', pattern: '^[+]?[0-9]*[.]?[0-9]+ *(?!M$)[A-Za-z]+$', maxLength: 100 };

/** The JSON Schemas of durations: of numbers with these bounds, and of texts. */
export function timeSchemas(bounds: JsonSchema): JsonSchema[] {
  return [{ type: 'number', ...bounds }, TEXT_OF_TIME];
}

const TIMES = timeSchemas({ exclusiveMinimum: 0, maximum: MAX_INTERVAL_MS });

/** Durations. They are converted to microseconds. */
export const time: OptionKind<number> = {
  expected: `${DURATION_FORM}, more than 0 and at most 1 year`,
  isValid: (value) => !Number.isNaN(microseconds(value)),
  read: microseconds,
  schema: { anyOf: TIMES },
};

/** Durations up to a number of milliseconds. */
export function timeUpTo(mostMs: number, most: string): OptionKind<number> {
  return {
    ...time,
    expected: `milliseconds or a duration such as '250ms' ${DURATION_UNITS}, more than 0 and at most ${most}`,
    isValid: (value) => microseconds(value) <= mostMs * 1000,
    schema: { anyOf: timeSchemas({ exclusiveMinimum: 0, maximum: mostMs }) },
  };
}

/** A duration, or a list of durations. */
export function times(expected: string, most: number, isValid: (list: readonly unknown[]) => boolean): OptionKind {
  return {
    expected,
    isValid: (value) => (Array.isArray(value) ? isValid(value) : time.isValid(value)),
    schema: { anyOf: [...TIMES, { type: 'array', items: time.schema, minItems: 1, maxItems: most }] },
    each: time,
  };
}

export const flag: OptionKind<boolean> = {
  expected: 'true or false',
  isValid: (value) => typeof value === 'boolean',
  schema: { type: 'boolean' },
};

/** Texts that match a pattern. */
export function text(expected: string, pattern: string): OptionKind<string> {
  const form = new RegExp(pattern);
  return {
    expected,
    isValid: (value) => typeof value === 'string' && form.test(value),
    schema: { type: 'string', pattern },
  };
}

/** Objects of options. `isValid` checks the whole object. */
export function object(
  expected: string,
  options: OptionRows,
  more: Omit<Partial<OptionKind>, 'isValid'> & { readonly isValid?: (value: never) => boolean } = {},
): OptionKind {
  const { isValid = () => true, or, mayBeEmpty = false } = more;
  return {
    schema: { type: 'object' },
    ...more,
    expected,
    options,
    isValid: (value) => {
      if (!isObject(value)) return or?.isValid(value) === true;
      return (mayBeEmpty || Object.keys(value).length > 0) && isValid(value as never);
    },
  };
}

/** Values that are only possible in code. */
export function inCode<T>({ schema: _, ...kind }: OptionKind<T>): OptionKind<T> {
  return kind;
}

/** A function in code, but not a class, which cannot be called. */
export function callable(expected: string): OptionKind<never> {
  return { expected, isValid: isCallable };
}

/** A function or a class in code. */
export function callableOrClass(expected: string): OptionKind<never> {
  return { expected, isValid: (value) => typeof value === 'function' };
}

/** A value, or in code also a function. */
export function orFunction<T>(kind: OptionKind<T>, expected: string): OptionKind {
  return {
    ...kind,
    expected: `${kind.expected}, or ${expected}`,
    isValid: (value) => isCallable(value) || kind.isValid(value),
    data: kind,
  };
}

/** Values in code that only a later step can read. */
export function readLater(data: OptionKind): OptionKind {
  return { expected: data.expected, isValid: () => true, data };
}

/**
 * A number of bytes, or a string of a number and a unit, such as `'512B'`, `'1kB'` or `'1.5MiB'`. The units are `B`, `kB`, `MB` and
 * `GB`, by thousands, and `KiB`, `MiB` and `GiB`, by 1024.
 */
export type Size = number | string;

const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

const SIZE = /^([0-9]{1,15}(?:[.][0-9]{1,9})?) ?([kMG]?B|[KMG]iB)$/;

/** Reads a size into bytes: a whole number from 1; NaN if it is not one. */
export function bytesOf(value: unknown): number {
  const bytes = typeof value === 'string' ? bytesOfText(value) : value;
  return Number.isSafeInteger(bytes) && (bytes as number) >= 1 ? (bytes as number) : NaN;
}

function bytesOfText(text: string): number {
  const match = SIZE.exec(text);
  if (match === null) return NaN;
  const [, amount, unit] = match;
  return Number(amount) * BYTES[unit!]!;
}

/** Sizes of at least one byte. */
export const size: OptionKind<number> = {
  expected: `bytes or a size such as '1kB' (units: ${Object.keys(BYTES).join(', ')}), a whole number of bytes and at least 1`,
  isValid: (value) => !Number.isNaN(bytesOf(value)),
  read: bytesOf,
  schema: {
    anyOf: [
      { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
      { type: 'string', pattern: SIZE.source },
    ],
  },
};
