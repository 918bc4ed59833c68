import { show } from '../errors/wording.js';

/** Where a value of a policy stands. */
export interface Place {
  /** The source. */
  readonly name: string;
  /** Its line, from 1; a function has none. */
  readonly line?: number;
  /** Its column, from 1. */
  readonly column?: number;
  /** Its place in the data, such as `limits.api.rate`; empty for all of it. */
  readonly path: string;
}

/** A name and its value. */
export interface LocatedEntry {
  readonly name: string;
  /** The place of the name. */
  readonly place: Place;
  readonly value: Located;
}

/** A value of a policy, and where it stands. */
export interface Located {
  readonly place: Place;
  /** The value of what is neither an object nor a list; of these something that no option takes. */
  readonly value: unknown;
  /** What it is, for messages. */
  readonly shown: string;
  /** What an object holds; `undefined` for anything else. */
  readonly entries: readonly LocatedEntry[] | undefined;
  /** What a list holds; `undefined` for anything else. */
  readonly items: readonly Located[] | undefined;
}

/** A place as messages name it: `limits.yaml:12:5 limits.api.rate`. */
export function showPlace({ name, line, column, path }: Place): string {
  return name + (line === undefined ? '' : `:${line}:${column ?? 1}`) + (path === '' ? '' : ` ${path}`);
}

/** The path of what an object or a list holds. */
export function within(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`;
  if (!/^[A-Za-z_$][\w$-]*$/.test(step)) return `${path}[${show(step)}]`;
  return path === '' ? step : `${path}.${step}`;
}
