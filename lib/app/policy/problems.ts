import { type Place, showPlace } from './located.js';

/** An error in a policy. */
export interface PolicyProblem {
  /** The source. */
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  /** The place in the data; empty for all of it. */
  readonly path: string;
  readonly message: string;
}

const MOST = 100;

/** The problems of a policy, in the order in which they were found. */
export class Problems {
  readonly list: PolicyProblem[] = [];
  /** The places of the problems, without their parts. */
  private readonly known = new Set<string>();

  /** The problems in the order of their lines. */
  get inOrder(): PolicyProblem[] {
    const at = ({ line = 0, column = 0 }: PolicyProblem) => line * 1e6 + column;
    return this.list.toSorted((one, other) => at(one) - at(other));
  }

  /**
   * Adds a problem. Always returns `undefined`, so that a reader can end with `return problems.add(…)`. `within`: the part of the place
   * that it refers to, such as `.rate`.
   */
  add({ name, line, column, path }: Place, message: string, within = ''): undefined {
    // Only the first problem of a place is kept, because it causes the others.
    const id = `${line}:${column} ${path}`;
    if (this.known.has(id) || this.list.length === MOST) return undefined;
    const at = line === undefined ? {} : { line, column: column ?? 1 };
    this.known.add(id);
    this.list.push({ file: name, ...at, path: path + within, message });
    return undefined;
  }
}

/** A problem on one line: `limits.yaml:12:5 limits.api.rate: expected a whole number >= 1, received -1`. */
export function showProblem({ file, line, column, path, message }: PolicyProblem): string {
  return `${showPlace({ name: file, line, column, path })}: ${message}`;
}
