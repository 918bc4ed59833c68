import type { Readable, Writable } from 'node:stream';

/** Where a command reads and writes. */
export interface Terminal {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** A command of the program. */
export interface Command {
  /** The text of its `--help`. */
  readonly help: string;
  /** Runs the command, and returns its exit code. Throws `UsageError` for wrong arguments, and `InputError` for a wrong input. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}

/** The command line is wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A file or address on the command line cannot be read or written: exit code 1. */
export class InputError extends Error {
  override readonly name = 'InputError';
}
