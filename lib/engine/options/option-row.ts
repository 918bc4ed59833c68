import { show } from '../errors/wording.js';

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The values that an option takes: for its checks, its messages and its JSON Schema. */
export interface OptionKind<T = unknown> {
  /** The values that it accepts, for messages: `a whole number >= 1`. */
  readonly expected: string;
  /** Whether a value is right. For an object or a list it checks the whole, after each of its parts. */
  readonly isValid: (value: unknown) => boolean;
  /** Converts a right value to what the library works with; by default the value itself. */
  readonly read?: (value: unknown) => T;
  /** Its JSON Schema, without that of its `options`. Without it, and without `data`, only code can give a value. */
  readonly schema?: JsonSchema;
  /** What it takes as data, in policies, if that differs from code. */
  readonly data?: OptionKind;
  /** The options of an object. */
  readonly options?: OptionRows;
  /** What it may be instead of an object of `options`. */
  readonly or?: OptionKind;
  /** Whether an object of `options` may have none of them. */
  readonly mayBeEmpty?: true;
  /** Whether it is an object of an algorithm's options. */
  readonly isOfAlgorithm?: true;
  /** The kind of each value of an object with any names. */
  readonly named?: OptionKind;
  /** The kind of each item, if it may be a list. */
  readonly each?: OptionKind;
}

/** What an option takes as data; `undefined` if only code can give it. */
export function dataOf(kind: OptionKind): OptionKind | undefined {
  return kind.data ?? (kind.schema === undefined ? undefined : kind);
}

/** The parts of an algorithm that determine whether it can have an option. */
export interface Able {
  readonly adapting?: unknown;
  readonly beyond?: unknown;
  readonly borrowing?: unknown;
  readonly leases?: unknown;
  readonly prefetch?: unknown;
  readonly sharing?: unknown;
}

/** Another option that an option excludes. */
export interface Exclusion {
  readonly option: string;
  /** Only if it has this value. */
  readonly value?: unknown;
  /** Only if it is a function. */
  readonly asFunction?: true;
  /** What to do instead, for messages. */
  readonly expected?: string;
}

/**
 * Everything about an option. Its checks and their messages, policies and their JSON Schema, the command line and the tables of
 * the docs are derived from this.
 */
export interface OptionRow<T = unknown> {
  readonly kind: OptionKind<T>;
  /** Its description in editors. */
  readonly text: string;
  /** Its default value. */
  readonly default?: unknown;
  /** Its default in words, if that is not a single value. */
  readonly usual?: string;
  /** Whether a limit must have it. */
  readonly required?: true;
  /** The algorithms whose limits must have it, if others need not. */
  readonly requiredFor?: (algorithm: Able) => boolean;
  /** The algorithms that can have it; by default all. */
  readonly for?: (algorithm: Able) => boolean;
  /** Why others cannot, for messages. */
  readonly because?: string;
  /** Whether the module's `defaults` can have it, so that limits take it over: those of all algorithms, or of some. */
  readonly inDefaults?: true | ((algorithm: Able) => boolean);
  /**
   * How it can change while an app runs: by a version of the policy; also by `setRate` and for single keys; or by `setMode`. By
   * default it cannot. An algorithm's own options change with the rate.
   */
  readonly live?: 'policy' | 'rate' | 'mode';
  /** Whether a limit of the command line can have it. */
  readonly onCommandLine?: true;
  /** Whether only a limit with a name everywhere can have it: code finds what it keeps by the name. */
  readonly needsName?: true;
  /** Whether it is a duration of seconds or more: a whole number below 1000 is most likely meant as seconds. */
  readonly isLong?: true;
  /** The options that it excludes. */
  readonly excludes?: readonly (string | Exclusion)[];
  /** The options that it needs, and what these are. */
  readonly needs?: Readonly<Record<string, string>>;
}

export type OptionRows = Readonly<Record<string, OptionRow>>;

/** Its default in words; `undefined` if there is nothing to say. */
export function usualOf({ default: value, usual }: OptionRow): string | undefined {
  return usual ?? (value === undefined ? undefined : show(value));
}

/** Parts that a row leaves out are its own, so that none is read from `Object.prototype`, to which other code may have written. */
const ABSENT = {
  default: undefined,
  required: undefined,
  live: undefined,
  needsName: undefined,
  isLong: undefined,
  excludes: undefined,
  needs: undefined,
};
const NO_PARTS = { read: undefined, each: undefined, options: undefined };

/** Rows and kinds with all of their parts: these do not change, so each is made once. */
const COMPLETE = new WeakMap<object, object>();

function complete<T extends object>(parts: T, absent: object): T {
  const known = COMPLETE.get(parts) as T | undefined;
  if (known !== undefined) return known;
  const whole = { ...absent, ...parts };
  COMPLETE.set(parts, whole);
  return whole;
}

/** A row, without what other code wrote to `Object.prototype`. */
export function ownRow(row: OptionRow): OptionRow {
  return complete(row, ABSENT);
}

/** A kind, without what other code wrote to `Object.prototype`. */
export function ownKind<T>(kind: OptionKind<T>): OptionKind<T> {
  return complete(kind, NO_PARTS);
}

/** Rows, each without what other code wrote to `Object.prototype`. */
export function ownRows(rows: OptionRows): OptionRows {
  const known = COMPLETE.get(rows) as OptionRows | undefined;
  if (known !== undefined) return known;
  const own: Record<string, OptionRow> = {};
  for (const option of Object.keys(rows)) own[option] = ownRow(rows[option]!);
  COMPLETE.set(rows, own);
  return own;
}

/** A row and the name of its option. */
export type NamedRow = readonly [option: string, row: OptionRow];

/** Some rows as lists, which every limit that an app starts with is read by. */
interface RowLists {
  /** The names of all options. */
  readonly names: readonly string[];
  /** All rows, each without what other code wrote to `Object.prototype`. */
  readonly all: readonly NamedRow[];
  /** The rows that exclude other options or need them. */
  readonly related: readonly NamedRow[];
  /** The rows of long durations, and those whose values have options of their own. */
  readonly timed: readonly NamedRow[];
}

const LISTS = new WeakMap<OptionRows, RowLists>();

/** Returns some rows as lists. Rows don't change, so their lists are made once. */
export function listsOf(rows: OptionRows): RowLists {
  const known = LISTS.get(rows);
  if (known !== undefined) return known;
  const all = Object.entries(ownRows(rows));
  const lists: RowLists = {
    names: Object.keys(rows),
    all,
    related: all.filter(([, { excludes, needs }]) => excludes !== undefined || needs !== undefined),
    // Some options are read by a later step, and only their data has rows.
    timed: all.filter(([, { kind, isLong }]) => isLong === true || ownKind(dataOf(kind) ?? kind).options !== undefined),
  };
  LISTS.set(rows, lists);
  return lists;
}

/** The names of the required options. */
export function requiredOf(rows: OptionRows): string[] {
  return listsOf(rows).all.flatMap(([option, { required }]) => (required === true ? [option] : []));
}
