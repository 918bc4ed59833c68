import type { Filters } from './filters.js';
import type { RequestKey } from './tracked-keys.js';

/** A request from a log, or a generated one. */
export interface LoggedRequest {
  /** Whole microseconds since the epoch. */
  readonly time: number;
  /** Its identity by each of the limits' keys. */
  readonly keys: readonly RequestKey[];
  /** Units: a whole number >= 1. */
  readonly cost: number;
}

/** Reads a line: a request, the reason why it is not one, or nothing if it is filtered out. */
export type ReadLine = (line: string) => LoggedRequest | string | undefined;

/** What limits need of a line besides its time. */
export interface WantedFields {
  /** Each is `ip`, `global`, a field, or a template with fields in braces. */
  readonly keys: readonly string[];
  readonly cost: string | undefined;
  readonly time: string | undefined;
  readonly filters: Filters;
}

/** A format of log lines. */
export interface LogFormat {
  readonly name: string;
  /** Whether a line is of this format. */
  matches(line: string): boolean;
  /** Prepares to read lines. Throws `UsageError` if the format lacks a field; `samples` are the first lines. */
  reader(wanted: WantedFields, samples: readonly string[]): ReadLine;
}
