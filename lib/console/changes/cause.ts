import { RateLimitArgumentError, RateLimitConfigError, RateLimitStoreError } from '../../errors/errors.js';
import { consoleMessages } from '../../errors/messages/console.js';
import { asCauseText } from '../../overrides/change-options.js';
import { ConsoleProblem, wrongFields } from '../problem.js';

/** By whom and why something is changed. */
export interface Cause {
  readonly by?: string;
  readonly reason: string;
}

/** Reads what the option `actor` gave. Throws a `ConsoleProblem` if it is nobody. */
export function actorOf(given: unknown): string {
  const name = typeof given === 'string' ? given.trim() : '';
  if (name === '') throw new ConsoleProblem(500, consoleMessages.wrongActor(given));
  return asCauseText(name);
}

/** The options of changes, and the fields of requests that they are read from. */
const FIELDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    key: 'identity',
    identity: 'identity',
    pattern: 'identity',
    ip: 'ip',
    expiresIn: 'expiresIn',
    reason: 'reason',
    by: 'reason',
    mode: 'mode',
    version: 'version',
  }),
);

/** The end of a message that names an option: what it is, and what is wanted. */
const OF_OPTION = /option '([\w.]+)' (.*)$/s;
/** What a message says before it comes to the point. */
const LOCATION = /^LimiterService\.\w+(?: of '[^']*')?(?:\.candidate)?: /;

/** Makes a problem of what a change failed with: with the field of the request, where one is to blame. `otherwise`: the field, if no option is named. */
export function problemOf(error: unknown, otherwise: string): unknown {
  if (error instanceof RateLimitStoreError) return new ConsoleProblem(503, error.message, [], 1);
  if (!(error instanceof RateLimitConfigError) && !(error instanceof RateLimitArgumentError)) return error;
  const [, option, rest] = OF_OPTION.exec(error.message) ?? [];
  if (option === undefined) return wrongFields([{ field: otherwise, message: error.message.replace(LOCATION, '') }]);
  const ofPatch = otherwise === 'patch' ? `patch.${option}` : otherwise;
  return wrongFields([{ field: FIELDS.get(option) ?? ofPatch, message: rest! }]);
}

/** Does something, and fails with a problem. */
export async function tried<T>(otherwise: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    throw problemOf(error, otherwise);
  }
}
