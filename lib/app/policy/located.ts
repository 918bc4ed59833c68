import { show } from '../../engine/errors/wording.js';

/** The place of a value in a policy. */
export interface Place {
  /** The source. */
  readonly name: string;
  /** Its line, from 1; a function has none. */
  readonly line?: number | undefined;
  /** Its column, from 1. */
  readonly column?: number | undefined;
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

/** A value returned by a function. Each property is read once. */
export class PlainValue implements Located {
  readonly place: Place;

  constructor(
    readonly value: unknown,
    name: string,
    path = '',
  ) {
    this.place = { name, path };
  }

  get shown(): string {
    return show(this.value);
  }

  get entries(): readonly LocatedEntry[] | undefined {
    if (!isPlainObject(this.value)) return undefined;
    return Object.entries(this.value)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => {
        const located = this.at(name, value);
        return { name, place: located.place, value: located };
      });
  }

  get items(): readonly Located[] | undefined {
    return Array.isArray(this.value)
      ? Array.from(this.value as unknown[], (each, index) => this.at(index, each))
      : undefined;
  }

  private at(step: string | number, value: unknown): PlainValue {
    return new PlainValue(value, this.place.name, within(this.place.path, step));
  }
}

/** Returns true for plain objects. The properties of a list, a `Map`, a date and the like have no meaning in a policy. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.prototype.toString.call(value) === '[object Object]';
}
