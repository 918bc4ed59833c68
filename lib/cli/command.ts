import { writeFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { parseArgs } from 'node:util';
import { cliMessages } from '../engine/errors/messages/cli.js';
import { reasonOf, withoutSecrets } from '../engine/errors/reasons.js';

export interface Terminal {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** The command line is invalid: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A file or address on the command line can't be read or written: exit code 1. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** An option of a command. Without a `value` it is a switch. */
export interface CommandOption {
  readonly help: string;
  /** The name of its value, such as `<url>`. */
  readonly value?: string;
  readonly repeats?: true;
  /** The commands that have the option, if this one rejects it. */
  readonly onlyFor?: string;
}

export type CommandOptions = Readonly<Record<string, CommandOption>>;

/** A command of the program. Its `--help` and the parser read the same table. */
export interface Command {
  /** The part of the usage after the name of the command, for each form. */
  readonly usage: readonly string[];
  readonly about: string;
  readonly options: CommandOptions;
  readonly notes?: string;
  /** The meaning of exit codes 0 and 1. */
  readonly exits: { readonly 0?: string; readonly 1?: string };
  /** Runs the command and returns its exit code. Throws `UsageError` for invalid arguments, and `InputError` for an invalid input. */
  run(read: ReadArguments, terminal: Terminal): Promise<number>;
}

export interface ReadArguments {
  readonly switches: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, string>;
  readonly lists: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
}

/** Reads a command line strictly: unknown options are rejected, and only options with `repeats` may be repeated. */
export function readArguments(args: readonly string[], options: CommandOptions): ReadArguments {
  const { tokens, positionals } = parsed(args, options);
  const switches = new Set<string>();
  const values = new Map<string, string>();
  const lists = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, value } = token;
    const list = lists.get(name);
    if (list !== undefined) list.push(value ?? '');
    else if (options[name]?.repeats === true) lists.set(name, [value ?? '']);
    else if (values.has(name) || switches.has(name)) throw new UsageError(cliMessages.optionTwice(name));
    else if (value === undefined) switches.add(name);
    else values.set(name, value);
  }
  const read = { switches, values, lists, positionals };
  for (const [name, { onlyFor }] of Object.entries(options)) {
    if (onlyFor !== undefined) refuseOptions(read, [name], onlyFor);
  }
  return read;
}

/** Returns exactly these arguments. An argument may be a URL with a password that was meant for `--redis`. */
export function argumentsOf({ positionals }: ReadArguments, ...expected: readonly string[]): string[] {
  const missing = expected[positionals.length];
  if (missing !== undefined) throw new UsageError(cliMessages.missingArgument(missing));
  const extra = positionals[expected.length];
  if (extra !== undefined) throw new UsageError(cliMessages.extraArgument(withoutSecrets(extra), expected));
  const empty = expected.find((_, index) => positionals[index] === '');
  if (empty !== undefined) throw new UsageError(cliMessages.missingArgument(empty));
  return [...positionals];
}

/** Throws if options are used that a command accepts only in another form. */
export function refuseOptions(read: ReadArguments, options: readonly string[], others: string): void {
  const { values, switches, lists } = read;
  const wrong = options.find((option) => values.has(option) || switches.has(option) || lists.has(option));
  if (wrong !== undefined) throw new UsageError(cliMessages.optionWithout(wrong, others));
}

function parsed(args: readonly string[], table: CommandOptions) {
  const options = Object.fromEntries(
    Object.entries(table).map(([name, { value, repeats = false }]) => [
      name,
      { type: value === undefined ? ('boolean' as const) : ('string' as const), multiple: repeats },
    ]),
  );
  const config = { args: [...args], options, allowPositionals: true, tokens: true } as const;
  try {
    return parseArgs({ ...config, strict: true });
  } catch (error) {
    if (!isParseError(error)) throw error;
    for (const token of parseArgs({ ...config, strict: false }).tokens) {
      if (token.kind !== 'option' || Object.hasOwn(table, token.name)) continue;
      throw new UsageError(cliMessages.unknownOption(token.rawName, [...Object.keys(table), 'help']));
    }
    // The rest of the message is about arguments that begin with a hyphen.
    throw new UsageError(cliMessages.unreadableArguments(error.message.split(/\.\s/)[0]!));
  }
}

function isParseError(error: unknown): error is Error {
  return error instanceof TypeError && String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS');
}

/** Writes a file that an option names. Throws `InputError`. */
export async function writeOutput(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (error) {
    throw new InputError(cliMessages.unwritableFile(path, reasonOf(error)));
  }
}

/** Maximum length of a line of `--help`. */
const WIDTH = 88;
const HELP: CommandOption = { help: 'Shows this text' };

export function helpOf(name: string, { usage, about, options, notes, exits }: Command): string {
  const shown = Object.entries({ ...options, help: HELP }).filter(([, { onlyFor }]) => onlyFor === undefined);
  const rows = shown.map(([option, { value, help, repeats }]) => {
    const label = value === undefined ? `--${option}` : `--${option} ${value}`;
    return [label, repeats ? `${help} (repeatable)` : help] as const;
  });
  const calls = usage.map((each, i) => `${i === 0 ? 'Usage:' : '      '} nestjs-sluice ${name} ${each}`);
  const codes = Object.entries({ 0: 'success', ...exits, 2: 'the command line is wrong' });
  return [
    calls.join('\n'),
    about,
    `Options:\n${helpRows(rows)}`,
    ...(notes === undefined ? [] : [notes]),
    `Exit codes:\n${helpRows(codes)}`,
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

/** Formats rows of a name and a text, with the texts in a column of their own. */
export function helpRows(rows: readonly (readonly [name: string, text: string])[]): string {
  const column = Math.max(...rows.map(([name]) => name.length)) + 4;
  const lines = rows.flatMap(([name, text]) =>
    wrapped(text, WIDTH - column).map((line, i) => (i === 0 ? `  ${name}`.padEnd(column) : ' '.repeat(column)) + line),
  );
  return lines.join('\n');
}

function wrapped(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}
