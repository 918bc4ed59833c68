import { show } from '../errors/wording.js';

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The values that an option takes: for its checks, its messages and its JSON Schema. */
export interface OptionKind<T = unknown> {
  /** What messages say that it wants. */
  readonly wants: string;
  /** Whether a value is right. Of an object or a list it looks at the whole, once each of its parts is right. */
  readonly isRight: (value: unknown) => boolean;
  /** Makes of a right value what the library works with; the value itself unless given. */
  readonly read?: (value: unknown) => T;
  /** Its JSON Schema, but for what `options` say. Without it, and without `data`, code alone can give a value. */
  readonly schema?: JsonSchema;
  /** What it takes as data, in policies, where that is something else than in code. */
  readonly data?: OptionKind;
  /** The options of one that is an object. */
  readonly options?: OptionRows;
  /** What an object of `options` may be instead. */
  readonly or?: OptionKind;
  /** An object of `options` may have none of them. */
  readonly mayBeEmpty?: true;
  /** It is an object of options of an algorithm. */
  readonly isOfAlgorithm?: true;
  /** The kind of each value, of an object of any names. */
  readonly named?: OptionKind;
  /** The kind of each value, of what may be a list. */
  readonly each?: OptionKind;
}

/** What an option takes as data; nothing if code alone can give it. */
export function dataOf(kind: OptionKind): OptionKind | undefined {
  return kind.data ?? (kind.schema === undefined ? undefined : kind);
}

/** The parts of an algorithm by which it can or cannot have an option. */
export interface Able {
  readonly adapting?: unknown;
  readonly borrowing?: unknown;
  readonly holding?: unknown;
  readonly prefetch?: unknown;
  readonly sharing?: unknown;
}

/** Another option with which an option does not go together. */
export interface Exclusion {
  readonly option: string;
  /** Only with this value. */
  readonly value?: unknown;
  /** Only as a function. */
  readonly asFunction?: true;
  /** What messages say to do. */
  readonly wants?: string;
}

/**
 * What is known of an option. Its checks and their messages, policies and their JSON Schema, the command line and the tables of the
 * docs come from this.
 */
export interface OptionRow<T = unknown> {
  readonly kind: OptionKind<T>;
  /** What editors show of it. */
  readonly text: string;
  /** The value that holds unless one is given. */
  readonly default?: unknown;
  /** What holds unless a value is given, where that is no one value. */
  readonly usual?: string;
  /** A limit cannot do without it. */
  readonly required?: true;
  /** The algorithms whose limits cannot do without it, where others can. */
  readonly requiredFor?: (algorithm: Able) => boolean;
  /** The algorithms that can have it: all unless given. */
  readonly for?: (algorithm: Able) => boolean;
  /** Why others cannot, for messages. */
  readonly because?: string;
  /** The module's `defaults` can have it, and limits take it over: those of all algorithms, or of some. */
  readonly inDefaults?: true | ((algorithm: Able) => boolean);
  /**
   * How it can change while an app runs: by a version of the policy; also by `setRate` and for single keys; or by `setMode`. Unless
   * given, not at all. An algorithm's own options change with the rate.
   */
  readonly live?: 'policy' | 'rate' | 'mode';
  /** A limit of the command line can have it. */
  readonly onCommandLine?: true;
  /** Only a limit that has a name everywhere can have it: code finds what it keeps by the name. */
  readonly needsName?: true;
  /** The options with which it does not go together. */
  readonly excludes?: readonly (string | Exclusion)[];
  /** The options that it needs, and what these are. */
  readonly needs?: Readonly<Record<string, string>>;
}

export type OptionRows = Readonly<Record<string, OptionRow>>;

/** What holds unless a value is given, in words; nothing if there is nothing to say. */
export function usualOf({ default: value, usual }: OptionRow): string | undefined {
  return usual ?? (value === undefined ? undefined : show(value));
}

/** The names of the options that cannot be left out. */
export function requiredOf(rows: OptionRows): string[] {
  return Object.keys(rows).filter((option) => rows[option]!.required === true);
}
