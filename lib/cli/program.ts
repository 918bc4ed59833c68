import { cliMessages } from '../engine/errors/messages/cli.js';
import { RateLimitArgumentError, RateLimitConfigError } from '../engine/errors/errors.js';
import { VERSION } from '../storage/telemetry/version.js';
import { type Command, helpOf, helpRows, InputError, readArguments, type Terminal, UsageError } from './command.js';
import { withoutSecrets, withoutSecretsIn } from '../engine/errors/reasons.js';
import { printableLines } from '../engine/util/printable.js';

interface Listed {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

type AppCommands = typeof import('./app/app.commands.js');

/** A command about the counters of an app. These are loaded as one file. */
const ofApps = (name: keyof AppCommands) => async () => (await import('./app/app.commands.js'))[name];

/** Every command, in the order of `--help`. To add one, add a line here. */
const COMMANDS: ReadonlyMap<string, Listed> = new Map(
  Object.entries<Listed>({
    init: {
      summary: 'Adds rate limits to a Nest project',
      load: async () => (await import('./init/init.command.js')).initCommand,
    },
    check: {
      summary: 'Checks policy files and lists their mistakes',
      load: async () => (await import('./check/check.command.js')).checkCommand,
    },
    simulate: {
      summary: 'Runs limits over an access log and shows what they would have rejected',
      load: async () => (await import('./simulate/simulate.command.js')).simulateCommand,
    },
    explain: { summary: 'Explains which limits apply to a request, and why', load: ofApps('explainCommand') },
    routes: { summary: 'Lists the routes of an app with their limits', load: ofApps('routesCommand') },
    console: { summary: "Serves an app's console without the app", load: ofApps('consoleCommand') },
    migrate: {
      summary: 'Converts an app from @nestjs/throttler or rate-limiter-flexible',
      load: async () => (await import('./migrate/migrate.command.js')).migrateCommand,
    },
    block: { summary: 'Blocks a key of a limit for a while', load: ofApps('blockCommand') },
    unblock: { summary: 'Unblocks a key', load: ofApps('unblockCommand') },
    reset: { summary: "Resets a key's counter", load: ofApps('resetCommand') },
    deny: { summary: 'Denies all requests of a client', load: ofApps('denyCommand') },
    allow: { summary: 'Exempts a client from limits', load: ofApps('allowCommand') },
    unlist: { summary: "Removes an entry that 'deny' or 'allow' added", load: ofApps('unlistCommand') },
    rates: { summary: 'Lists and changes rates and modes of limits', load: ofApps('ratesCommand') },
    call: {
      summary: 'Prints the redis-cli commands that evaluate a limit',
      load: ofApps('callCommand'),
    },
  }),
);

/** Exit codes: the command line is invalid; something that it names can't be used. */
const WRONG_USAGE = 2;
const WRONG_INPUT = 1;

/** Runs the program, and returns its exit code. Rejects only if there is a bug. */
export async function runProgram(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args;
  if (name === '--help' || name === '-h' || name === 'help') {
    terminal.stdout.write(help());
    return 0;
  }
  if (name === '--version' || name === '-v') {
    terminal.stdout.write(`${VERSION}\n`);
    return 0;
  }
  const names = [...COMMANDS.keys()];
  const listed = name === undefined ? undefined : COMMANDS.get(name);
  if (listed === undefined) {
    const message =
      name === undefined
        ? cliMessages.noCommand(names)
        : cliMessages.unknownCommand(String(withoutSecrets(name)), names);
    return failed(terminal, 'nestjs-sluice', message, WRONG_USAGE);
  }
  const command = await listed.load();
  const options = rest.slice(0, rest.includes('--') ? rest.indexOf('--') : rest.length);
  if (options.includes('--help') || options.includes('-h')) {
    terminal.stdout.write(helpOf(name!, command));
    return 0;
  }
  const program = `nestjs-sluice ${name}`;
  try {
    return await command.run(readArguments(rest, command.options), terminal);
  } catch (error) {
    if (isWrongUsage(error)) return failed(terminal, program, error.message, WRONG_USAGE);
    if (error instanceof InputError) return failed(terminal, program, error.message, WRONG_INPUT);
    throw error;
  }
}

function isWrongUsage(error: unknown): error is Error {
  return (
    error instanceof UsageError || error instanceof RateLimitConfigError || error instanceof RateLimitArgumentError
  );
}

function failed({ stderr }: Terminal, program: string, message: string, code: number): number {
  // The message may contain part of a log, or a connection string that was passed in the wrong place.
  stderr.write(printableLines(`${program}: ${withoutSecretsIn(message)}`.split('\n')));
  if (code === WRONG_USAGE) stderr.write(`see ${program} --help\n`);
  return code;
}

function help(): string {
  return [
    'Usage: nestjs-sluice <command> [options]',
    '',
    'Commands:',
    helpRows([...COMMANDS].map(([name, { summary }]) => [name, summary])),
    '',
    'Options:',
    helpRows([
      ['--help', 'Shows this text, or the help of the command before it'],
      ['--version', 'Shows the version of the package'],
    ]),
    '',
  ].join('\n');
}
