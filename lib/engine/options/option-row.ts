import { show } from '../errors/wording.js';
import { bare, getOrMake } from '../util/objects.js';

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The values that an option accepts: for its checks, its messages and its JSON Schema. */
export interface OptionKind<T = unknown> {
  /** A description of the accepted values, for messages: `a whole number >= 1`. */
  readonly expected: string;
  /** Returns true if a value is valid. For an object or a list it checks the whole, after each of its parts. */
  readonly isValid: (value: unknown) => boolean;
  /** Converts a valid value to the form that the library uses; by default the value itself. */
  readonly read?: (value: unknown) => T;
  /** Its JSON Schema, without that of its `options`. Without it, and without `data`, a value is only possible in code. */
  readonly schema?: JsonSchema;
  /** The kind of its values as data, in policies, if that differs from code. */
  readonly data?: OptionKind;
  /** The options of an object. */
  readonly options?: OptionRows;
  /** The kind of values that it accepts instead of an object of `options`. */
  readonly or?: OptionKind;
  /** True if an object of `options` may be empty. */
  readonly mayBeEmpty?: true;
  /** True if it is an object of an algorithm's options. */
  readonly isOfAlgorithm?: true;
  /** The kind of each value, for an object with arbitrary names. */
  readonly named?: OptionKind;
  /** The kind of each item, if it may be a list. */
  readonly each?: OptionKind;
}

/** The kind of an option's values as data; `undefined` if it is only possible in code. */
export function dataOf(kind: OptionKind): OptionKind | undefined {
  return kind.data ?? (kind.schema === undefined ? undefined : kind);
}

/** The parts of an algorithm that determine if it supports an option. */
export interface Able {
  readonly adapting?: unknown;
  readonly beyond?: unknown;
  readonly borrowing?: unknown;
  readonly leases?: unknown;
  readonly prefetch?: unknown;
  readonly sharing?: unknown;
}

/** An option that another option excludes. */
export interface Exclusion {
  readonly option: string;
  /** Only excluded with this value. */
  readonly value?: unknown;
  /** Only excluded if it is a function. */
  readonly asFunction?: true;
  /** The alternative, for messages. */
  readonly expected?: string;
}

/**
 * The complete definition of an option. Its checks and their messages, policies and their JSON Schema, the command line and the tables of
 * the docs are derived from it.
 */
export interface OptionRow<T = unknown> {
  readonly kind: OptionKind<T>;
  /** Its description in editors. */
  readonly text: string;
  /** Its default value. */
  readonly default?: unknown;
  /** Its default in words, if that is not a single value. */
  readonly usual?: string;
  /** True if a limit must have it. */
  readonly required?: true;
  /** The algorithms whose limits must have it, if it is optional for others. */
  readonly requiredFor?: (algorithm: Able) => boolean;
  /** The algorithms that support it; by default all. */
  readonly for?: (algorithm: Able) => boolean;
  /** The reason why others don't, for messages. */
  readonly because?: string;
  /** True if the module's `defaults` can contain it, so that limits of all algorithms, or of some, inherit it. */
  readonly inDefaults?: true | ((algorithm: Able) => boolean);
  /**
   * The way in which it can change at run time: through a version of the policy; also through `setRate` and for single keys; or through
   * `setMode`. By default it cannot. An algorithm's own options change with the rate.
   */
  readonly live?: 'policy' | 'rate' | 'mode';
  /** True if a limit on the command line can have it. */
  readonly onCommandLine?: true;
  /** True if it requires a limit whose name is the same everywhere, because code finds its data by the name. */
  readonly needsName?: true;
  /** True if it is a duration of seconds or more, so that a whole number below 1000 is most likely meant as seconds. */
  readonly isLong?: true;
  /** The options that it excludes. */
  readonly excludes?: readonly (string | Exclusion)[];
  /** The options that it needs, with a description of each. */
  readonly needs?: Readonly<Record<string, string>>;
}

export type OptionRows = Readonly<Record<string, OptionRow>>;

/** Its default in words; `undefined` if it has none. */
export function usualOf({ default: value, usual }: OptionRow): string | undefined {
  return usual ?? (value === undefined ? undefined : show(value));
}

/** Rows and kinds without properties that other code added to `Object.prototype`. They are constant, so each is created once. */
const OWN = new WeakMap<object, object>();

/** A row or a kind without properties that other code added to `Object.prototype`. */
export function ownParts<T extends object>(given: T): T {
  return getOrMake<object, object>(OWN, given, () => bare(given)) as T;
}

/** Rows without properties that other code added to `Object.prototype`. */
export function ownRows(rows: OptionRows): OptionRows {
  const make = () => bare(Object.fromEntries(Object.entries(rows).map(([option, row]) => [option, ownParts(row)])));
  return getOrMake<object, object>(OWN, rows, make) as OptionRows;
}

/** A row and the name of its option. */
export type NamedRow = readonly [option: string, row: OptionRow];

/** Some rows as lists, so that limits are read quickly when an app starts. */
interface RowLists {
  /** The names of all options. */
  readonly names: readonly string[];
  /** All rows, each without what other code wrote to `Object.prototype`. */
  readonly all: readonly NamedRow[];
  /** The names of the required options. */
  readonly required: readonly string[];
  /** The options that exclude or need others. */
  readonly related: readonly RelatedRow[];
  /** The rows of long durations, and those whose values have options of their own. */
  readonly timed: readonly TimedRow[];
}

/** An option that excludes or needs others. */
interface RelatedRow {
  readonly option: string;
  /** Its default value. */
  readonly usual: unknown;
  readonly excludes: readonly Exclusion[];
  readonly needs: readonly (readonly [option: string, what: string])[];
}

/** A long duration, or an option whose values have options of their own. */
interface TimedRow {
  readonly option: string;
  readonly options: OptionRows | undefined;
  readonly isLong: boolean;
}

const LISTS = new WeakMap<OptionRows, RowLists>();

/** Returns some rows as lists. Rows don't change, so their lists are created once. */
export function listsOf(rows: OptionRows): RowLists {
  return getOrMake(LISTS, rows, () => makeLists(rows));
}

function makeLists(rows: OptionRows): RowLists {
  const all = Object.entries(ownRows(rows));
  return {
    names: Object.keys(rows),
    all,
    related: all.flatMap(([option, { default: usual, excludes = [], needs = {} }]) => {
      const others = excludes.map((each) => bare<Exclusion>(typeof each === 'string' ? { option: each } : each));
      const related = { option, usual, excludes: others, needs: Object.entries(needs) };
      return others.length + related.needs.length === 0 ? [] : [related];
    }),
    required: all.flatMap(([option, { required }]) => (required === true ? [option] : [])),
    timed: all.flatMap(([option, { kind, isLong }]) => {
      // Some options are read by a later step, and only their data has rows.
      const { options } = ownParts(dataOf(kind) ?? kind);
      return isLong === true || options !== undefined ? [{ option, options, isLong: isLong === true }] : [];
    }),
  };
}

/** The names of the required options. */
export function requiredOf(rows: OptionRows): readonly string[] {
  return listsOf(rows).required;
}
