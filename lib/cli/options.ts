import { parseArgs, type ParseArgsConfig } from 'node:util';
import { cliMessages } from '../engine/errors/messages/cli.js';
import { UsageError } from './command.js';

/** The options that a command knows. */
export type KnownOptions = NonNullable<ParseArgsConfig['options']>;

/** The options and positional arguments of a command. */
export interface ReadArguments {
  readonly switches: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, string>;
  readonly lists: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
}

/** Reads a command line strictly: no unknown options, and only list options may be repeated. */
export function readArguments(args: readonly string[], options: KnownOptions): ReadArguments {
  const { tokens, positionals } = parsed(args, options);
  const switches = new Set<string>();
  const values = new Map<string, string>();
  const lists = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, value } = token;
    const list = lists.get(name);
    if (list !== undefined) list.push(value ?? '');
    else if (options[name]?.multiple === true) lists.set(name, [value ?? '']);
    else if (values.has(name) || switches.has(name)) throw new UsageError(cliMessages.optionTwice(name));
    else if (value === undefined) switches.add(name);
    else values.set(name, value);
  }
  return { switches, values, lists, positionals };
}

function parsed(args: readonly string[], options: KnownOptions) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true, tokens: true });
  } catch (error) {
    if (!isParseError(error)) throw error;
    const unknown = unknownOption(args, options);
    if (unknown !== undefined)
      throw new UsageError(cliMessages.unknownOption(unknown, [...Object.keys(options), 'help']));
    // The rest of its message is about arguments that begin with a hyphen.
    throw new UsageError(cliMessages.unreadableArguments(error.message.split(/\.\s/)[0]!));
  }
}

/** The first option that a command does not know, as it was written. */
function unknownOption(args: readonly string[], options: KnownOptions): string | undefined {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind === 'option' && !Object.hasOwn(options, token.name)) return token.rawName;
  }
  return undefined;
}

function isParseError(error: unknown): error is Error {
  return error instanceof TypeError && String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS');
}
