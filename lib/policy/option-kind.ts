import { isTimezone } from '../algorithms/calendar.js';
import { duration, MAX_INTERVAL_MS } from '../algorithms/options.js';

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What an option takes as data: for the reader, for its messages, and for editors. */
export interface OptionKind {
  readonly wants: string;
  readonly isRight: (value: unknown) => boolean;
  readonly schema: JsonSchema;
  /** The options of one that is an object itself; all of them are needed, unless it is a patch. */
  readonly options?: Readonly<Record<string, OptionKind>>;
  /** It is an object of some options, at least one, or `null` for none. */
  readonly isPatch?: true;
  /** It is an object of some options, at least one; `isRight` looks at it as a whole. */
  readonly isPartial?: true;
  /** Those of `options` that it cannot do without, where it needs not all. */
  readonly needs?: readonly string[];
  /** What each value has of one that is an object of any names; `isRight` looks at it as a whole, too. */
  readonly named?: OptionKind;
  /** It may also be something else than an object; `isRight` looks at that, and `schema` is of both. */
  readonly isEither?: true;
  /** What each has of one that may be a list; `isRight` looks at the list as a whole, too. */
  readonly each?: OptionKind;
}

export const whole = (min = 1, max = Number.MAX_SAFE_INTEGER): OptionKind => {
  const isBounded = max < Number.MAX_SAFE_INTEGER;
  return {
    wants: `a whole number >= ${min}${isBounded ? ` and <= ${max}` : ''}`,
    isRight: (value) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
    schema: { type: 'integer', minimum: min, maximum: max },
  };
};

export const words = (list: readonly string[]): OptionKind => ({
  wants: `one of ${list.join(', ')}`,
  isRight: (value) => list.includes(value as string),
  schema: { enum: list },
});

export const fraction: OptionKind = {
  wants: 'a number > 0 and <= 1',
  isRight: (value) => typeof value === 'number' && value > 0 && value <= 1,
  schema: { type: 'number', exclusiveMinimum: 0, maximum: 1 },
};

export const TIME_SCHEMAS: readonly JsonSchema[] = [
  { type: 'number', exclusiveMinimum: 0, maximum: MAX_INTERVAL_MS },
  { type: 'string', pattern: '^[+]?[0-9]*[.]?[0-9]+ *[A-Za-z]*$', maxLength: 100 },
];

export const time: OptionKind = {
  wants: "milliseconds or a duration such as '250ms', '10s', '1m', more than 0 and at most 1 year",
  isRight: (value) => succeeds(() => duration('', '', value)),
  schema: { anyOf: TIME_SCHEMAS },
};

export const flag: OptionKind = {
  wants: 'true or false',
  isRight: (value) => typeof value === 'boolean',
  schema: { type: 'boolean' },
};

export const timezone: OptionKind = {
  wants: "an IANA time zone such as 'UTC' or 'Europe/Berlin'",
  isRight: isTimezone,
  schema: { type: 'string', minLength: 1 },
};

/** Whether a reader of options takes what it is given. */
export function succeeds(call: () => unknown): boolean {
  try {
    call();
    return true;
  } catch {
    return false;
  }
}
