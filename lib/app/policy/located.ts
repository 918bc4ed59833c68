import { show } from '../../engine/errors/wording.js';

/** The place of a value in a policy. */
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

/** A value of a policy, with its place. */
export interface Located {
  readonly place: Place;
  /** The value, unless it is an object or a list; for these, a value that no option accepts. */
  readonly value: unknown;
  /** The value in the form that messages show. */
  readonly shown: string;
  /** The entries of an object; `undefined` for anything else. */
  readonly entries: readonly LocatedEntry[] | undefined;
  /** The items of a list; `undefined` for anything else. */
  readonly items: readonly Located[] | undefined;
}

/** A place in the form that messages show: `limits.yaml:12:5 limits.api.rate`. */
export function showPlace({ name, line, column, path }: Place): string {
  return name + (line === undefined ? '' : `:${line}:${column ?? 1}`) + (path === '' ? '' : ` ${path}`);
}

/** The path of a member of an object or a list. */
export function within(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`;
  if (!/^[A-Za-z_$][\w$-]*$/.test(step)) return `${path}[${show(step)}]`;
  return path === '' ? step : `${path}.${step}`;
}
