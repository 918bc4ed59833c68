import type { JsonSchema, OptionKind, OptionRows } from './option-row.js';
import { isCallable } from '../util/is-class.js';
import { DURATION_FORM, DURATION_UNITS, isObject, MAX_INTERVAL_MS, microseconds } from './values.js';

/** Whole numbers. */
export function whole(min = 1, max = Number.MAX_SAFE_INTEGER): OptionKind<number> {
  const isBounded = max < Number.MAX_SAFE_INTEGER;
  return {
    wants: `a whole number >= ${min}${isBounded ? ` and <= ${max}` : ''}`,
    isRight: (value) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
    schema: { type: 'integer', minimum: min, maximum: max },
  };
}

/** Numbers that a JSON Schema bounds: `minimum`, `exclusiveMinimum`, `maximum`, `exclusiveMaximum`. */
export function number(wants: string, bounds: Readonly<Record<string, number>>): OptionKind<number> {
  const { minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity, exclusiveMaximum = Infinity } = bounds;
  return {
    wants,
    isRight: (value) =>
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

/** One of some words. */
export function words<const Word extends string>(list: readonly Word[]): OptionKind<Word> {
  return {
    wants: `one of ${list.join(', ')}`,
    isRight: (value) => list.includes(value as Word),
    schema: { enum: list },
  };
}

const TEXT_OF_TIME: JsonSchema = { type: 'string', pattern: '^[+]?[0-9]*[.]?[0-9]+ *(?!M$)[A-Za-z]+$', maxLength: 100 };

/** The JSON Schemas of durations: of numbers with these bounds, and of texts. */
export function timeSchemas(bounds: JsonSchema): JsonSchema[] {
  return [{ type: 'number', ...bounds }, TEXT_OF_TIME];
}

const TIMES = timeSchemas({ exclusiveMinimum: 0, maximum: MAX_INTERVAL_MS });

/** Durations. They are read into microseconds. */
export const time: OptionKind<number> = {
  wants: `${DURATION_FORM}, more than 0 and at most 1 year`,
  isRight: (value) => !Number.isNaN(microseconds(value)),
  read: microseconds,
  schema: { anyOf: TIMES },
};

/** Durations up to a number of milliseconds. */
export function timeUpTo(mostMs: number, most: string): OptionKind<number> {
  return {
    ...time,
    wants: `milliseconds or a duration such as '250ms' ${DURATION_UNITS}, more than 0 and at most ${most}`,
    isRight: (value) => microseconds(value) <= mostMs * 1000,
    schema: { anyOf: timeSchemas({ exclusiveMinimum: 0, maximum: mostMs }) },
  };
}

/** A duration, or a list of durations. */
export function times(wants: string, most: number, isRight: (list: readonly unknown[]) => boolean): OptionKind {
  return {
    wants,
    isRight: (value) => (Array.isArray(value) ? isRight(value) : time.isRight(value)),
    schema: { anyOf: [...TIMES, { type: 'array', items: time.schema, minItems: 1, maxItems: most }] },
    each: time,
  };
}

export const flag: OptionKind<boolean> = {
  wants: 'true or false',
  isRight: (value) => typeof value === 'boolean',
  schema: { type: 'boolean' },
};

/** Texts of a pattern. */
export function text(wants: string, pattern: string): OptionKind<string> {
  const form = new RegExp(pattern);
  return {
    wants,
    isRight: (value) => typeof value === 'string' && form.test(value),
    schema: { type: 'string', pattern },
  };
}

/** Objects of options. `isRight` checks the whole. */
export function object(
  wants: string,
  options: OptionRows,
  more: Omit<Partial<OptionKind>, 'isRight'> & { readonly isRight?: (value: never) => boolean } = {},
): OptionKind {
  const { isRight = () => true, or, mayBeEmpty = false } = more;
  return {
    schema: { type: 'object' },
    ...more,
    wants,
    options,
    isRight: (value) => {
      if (!isObject(value)) return or?.isRight(value) === true;
      return (mayBeEmpty || Object.keys(value).length > 0) && isRight(value as never);
    },
  };
}

/** Values that only code can give. */
export function inCode<T>({ schema: _, ...kind }: OptionKind<T>): OptionKind<T> {
  return kind;
}

/** A function in code, and no class: that cannot be called. */
export function callable(wants: string): OptionKind<never> {
  return { wants, isRight: isCallable };
}

/** A function or a class in code. */
export function callableOrClass(wants: string): OptionKind<never> {
  return { wants, isRight: (value) => typeof value === 'function' };
}

/** In code a value or a function, as data a value. */
export function orFunction<T>(kind: OptionKind<T>, wants: string): OptionKind {
  return {
    ...kind,
    wants: `${kind.wants}, or ${wants}`,
    isRight: (value) => isCallable(value) || kind.isRight(value),
    data: kind,
  };
}

/** Values that only a later step can read in code. */
export function readLater(data: OptionKind): OptionKind {
  return { wants: data.wants, isRight: () => true, data };
}
