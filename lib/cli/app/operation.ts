import { withoutSecrets } from '../../engine/util/without-secrets.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { DURATION_UNITS, milliseconds } from '../../engine/options/values.js';
import { type CommandOptions, InputError, type ReadArguments, UsageError } from '../command.js';
import { PLACE_OPTIONS, type Place } from './place.js';
import { assertConnected, startApp, type StartedApp } from './started-app.js';

/** The options of all commands that change something. */
export const OPERATION_OPTIONS = {
  ...PLACE_OPTIONS,
  by: { value: '<name>', help: 'Who makes the change, for the log' },
  reason: { value: '<text>', help: 'Why, for the log' },
  force: {
    help: 'Makes the change even if the limit has no counter now, no instance has used the prefix yet, or the key is an address',
  },
  json: { help: 'Prints JSON' },
} as const satisfies CommandOptions;

/** Who makes a change, and why. */
export function causeOf({ values }: ReadArguments): { by?: string; reason?: string } {
  const [by, reason] = [values.get('by'), values.get('reason')];
  return { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
}

/** The time of `--for`, as it was written. */
export function timeOf({ values }: ReadArguments): string | undefined {
  const time = values.get('for');
  if (time !== undefined && !((milliseconds(time) ?? 0) > 0)) {
    throw new UsageError(
      cliMessages.wrongOption(
        'for',
        withoutSecrets(time),
        `a duration such as '10m', '1h' ${DURATION_UNITS}, at most 1 year`,
      ),
    );
  }
  return time;
}

/** Exactly these arguments. An argument may be an address with a password that was meant for `--redis`. */
export function argumentsOf({ positionals }: ReadArguments, ...wants: readonly string[]): string[] {
  const missing = wants[positionals.length];
  if (missing !== undefined) throw new UsageError(cliMessages.missingArgument(missing));
  const extra = positionals[wants.length];
  if (extra !== undefined) throw new UsageError(cliMessages.extraArgument(withoutSecrets(extra), wants));
  const empty = wants.find((_, index) => positionals[index] === '');
  if (empty !== undefined) throw new UsageError(cliMessages.missingArgument(empty));
  return [...positionals];
}

/** Errors of the library, which may come from another copy of it, as those of the program. */
const OF_LIBRARY = new Map<string, new (message: string) => Error>([
  ['RateLimitConfigError', UsageError],
  ['RateLimitArgumentError', UsageError],
  ['RateLimitStoreError', InputError],
]);

/** Does something with an app, and closes it. */
export async function withApp<T>(place: Place, changes: boolean, work: (app: StartedApp) => Promise<T>): Promise<T> {
  const app = await startApp(place, { changes });
  try {
    await assertConnected(app);
    return await work(app);
  } catch (error) {
    const wrong = error instanceof Error ? OF_LIBRARY.get(error.name) : undefined;
    throw wrong === undefined ? error : new wrong((error as Error).message);
  } finally {
    await app.close();
  }
}
