import { cliMessages } from '../engine/errors/messages/cli.js';
import { RateLimitArgumentError, RateLimitConfigError } from '../engine/errors/errors.js';
import { VERSION } from '../storage/telemetry/version.js';
import { type Command, InputError, type Terminal, UsageError } from './command.js';
import { withoutSecrets, withoutSecretsIn } from '../engine/util/without-secrets.js';
import { printable } from '../engine/util/printable.js';

/** A command that is loaded only when it is used. */
interface Listed {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** Every command. To add one, add a line here. */
const COMMANDS = new Map<string, Listed>([
  [
    'init',
    {
      summary: 'adds limits to a Nest project',
      load: async () => (await import('./init/init.command.js')).initCommand,
    },
  ],
  [
    'check',
    {
      summary: 'reports what is wrong in policy files',
      load: async () => (await import('./check/check.command.js')).checkCommand,
    },
  ],
  [
    'simulate',
    {
      summary: 'runs limits over an access log, and reports what they would have refused',
      load: async () => (await import('./simulate/simulate.command.js')).simulateCommand,
    },
  ],
  [
    'explain',
    {
      summary: 'explains what limits do to a request of an app',
      load: async () => (await import('./app/app.commands.js')).explainCommand,
    },
  ],
  [
    'console',
    {
      summary: 'serves the console of an app without the app',
      load: async () => (await import('./app/app.commands.js')).consoleCommand,
    },
  ],
  [
    'migrate',
    {
      summary: 'converts an app from @nestjs/throttler or rate-limiter-flexible',
      load: async () => (await import('./migrate/migrate.command.js')).migrateCommand,
    },
  ],
  [
    'block',
    {
      summary: 'refuses a key of a limit for a time',
      load: async () => (await import('./app/app.commands.js')).blockCommand,
    },
  ],
  [
    'unblock',
    {
      summary: 'ends the block of a key',
      load: async () => (await import('./app/app.commands.js')).unblockCommand,
    },
  ],
  [
    'reset',
    {
      summary: 'forgets what a key has used',
      load: async () => (await import('./app/app.commands.js')).resetCommand,
    },
  ],
  [
    'deny',
    {
      summary: 'refuses clients',
      load: async () => (await import('./app/app.commands.js')).denyCommand,
    },
  ],
  [
    'allow',
    {
      summary: 'exempts clients from limits',
      load: async () => (await import('./app/app.commands.js')).allowCommand,
    },
  ],
  [
    'unlist',
    {
      summary: 'ends an entry of deny or allow',
      load: async () => (await import('./app/app.commands.js')).unlistCommand,
    },
  ],
  [
    'rates',
    {
      summary: 'lists and changes rates and modes of limits',
      load: async () => (await import('./app/app.commands.js')).ratesCommand,
    },
  ],
  [
    'call',
    {
      summary: 'prints the lines of redis-cli that decide a limit by hand',
      load: async () => (await import('./app/app.commands.js')).callCommand,
    },
  ],
]);

/** Exit codes: the command line is wrong; something it names cannot be used. */
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
    terminal.stdout.write(command.help);
    return 0;
  }
  const program = `nestjs-sluice ${name}`;
  try {
    return await command.run(rest, terminal);
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
  // The message may contain part of a log, or a connection that was given in the wrong place.
  stderr.write(`${program}: ${printable(withoutSecretsIn(message), Infinity)}\n`);
  if (code === WRONG_USAGE) stderr.write(`see ${program} --help\n`);
  return code;
}

function help(): string {
  const width = Math.max(...[...COMMANDS.keys()].map((name) => name.length));
  const lines = [...COMMANDS].map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    'Usage: nestjs-sluice <command> [options]',
    '',
    'Commands:',
    ...lines,
    '',
    'Options:',
    '  --help     this text, or after a command that of the command',
    '  --version  the version of the package',
    '',
  ].join('\n');
}
