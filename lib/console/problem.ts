import { STATUS_CODES } from 'node:http';
import type { ChangeCause } from '../app/overrides/change-cause.js';
import { asCauseText } from '../app/overrides/change-options.js';
import { RateLimitArgumentError, RateLimitConfigError, RateLimitStoreError } from '../engine/errors/errors.js';
import { consoleMessages } from '../engine/errors/messages/console.js';
import type { FieldError, Problem } from './api.js';

/** The reason why a request fails, in the form of its response. */
export class ConsoleProblem extends Error {
  override readonly name = 'ConsoleProblem';

  constructor(
    readonly status: number,
    detail: string,
    readonly errors: readonly FieldError[] = [],
    /** Seconds after which to retry. */
    readonly retryAfter?: number,
  ) {
    super(detail);
  }

  get body(): Problem {
    const { status, message: detail, errors } = this;
    return {
      type: 'about:blank',
      title: STATUS_CODES[status] ?? 'Error',
      status,
      detail,
      ...(errors.length > 0 && { errors: [...errors] }),
    };
  }
}

export function wrongFields(errors: readonly FieldError[]): ConsoleProblem {
  const shown = errors.map(({ field, message }) => ({ field, message: consoleMessages.ofHeaders(message) }));
  return new ConsoleProblem(400, shown.map(({ field, message }) => `${field}: ${message}`).join('; '), shown);
}

/** The actor and the reason of a change. */
export type Cause = Readonly<ChangeCause> & { readonly reason: string };

/** Reads the result of the option `actor`. Throws a `ConsoleProblem` if it is empty or invalid. */
export function actorOf(given: unknown): string {
  const name = typeof given === 'string' ? given.trim() : '';
  if (name === '') throw new ConsoleProblem(500, consoleMessages.wrongActor(given));
  return asCauseText(name);
}

/** The options of changes, with the fields of requests that they are read from. */
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

/** The call in an error, at the beginning of a message. */
const CALL = String.raw`LimiterService\.\w+(?: of '.*?')?(?:\.candidate)?`;
/** A message about an option of a call: `LimiterService.setRate of 'api'.rate: expected ...`. */
const OF_OPTION = new RegExp(String.raw`^${CALL}(?:\.([\w.]+): |: (?=(?:unknown )?option '([\w.]+)'))(.*)$`, 's');
const LOCATION = new RegExp(String.raw`^(?:${CALL}|key): `);

/** Turns an error of a change into a problem with the field to blame; `otherwise` if the error names no option. */
export function problemOf(error: unknown, otherwise: string): unknown {
  if (error instanceof RateLimitStoreError) return new ConsoleProblem(503, error.message, [], 1);
  if (!(error instanceof RateLimitConfigError) && !(error instanceof RateLimitArgumentError)) return error;
  const [, written, unknown, rest] = OF_OPTION.exec(error.message) ?? [];
  const option = written ?? unknown;
  if (option === undefined) return wrongFields([{ field: otherwise, message: error.message.replace(LOCATION, '') }]);
  const ofPatch = otherwise === 'patch' ? `patch.${option}` : otherwise;
  return wrongFields([{ field: FIELDS.get(option) ?? ofPatch, message: rest! }]);
}

/** Says why data could not be read, or may be out of date. */
export function unreadProblem({ message, isElsewhere }: RateLimitStoreError): string {
  return isElsewhere === true ? message : consoleMessages.unread(message);
}

/** Makes a change. Throws a problem if it fails. */
export async function tried<T>(otherwise: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    throw problemOf(error, otherwise);
  }
}
