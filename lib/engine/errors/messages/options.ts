import type { RateLimitErrorCode } from '../errors.js';
import { editsBetween, listOf, missingInput, quoted, unknownName, wrongInput } from '../wording.js';
import { durationHint } from '../../options/values.js';

/** The suggestion after a name that is valid in another place and differs by one letter, such as `limit` and `limits`. */
export function almost(name: string, known: readonly string[]): string {
  const near = known.find((each) => editsBetween(name, each) === 1);
  return near === undefined ? '' : `. Did you mean '${near}'?`;
}

/** The suggestion after a value that is almost a duration, if a duration is expected. */
export function nearDuration(received: unknown, expected: string): string {
  return isDuration(expected) ? durationHint(received) : '';
}

/** The places where a rate may be a function. */
const RATE_OF_REQUESTS = /^(?:limits\[\d+\]|@RateLimit on .+)(?<!candidate)\.rate$/;

/** The suggestion after an object of rates, such as those of plans. */
function byRequest(place: string, received: unknown): string {
  const isRates = RATE_OF_REQUESTS.test(place) && Object.getPrototypeOf(Object(received)) === Object.prototype;
  return isRates ? '; for a rate that depends on the request, pass a function that returns it' : '';
}

/** The code of an error about a value. */
export function codeOfWrong(expected: string): RateLimitErrorCode {
  return isDuration(expected) ? 'SLUICE_INVALID_DURATION' : 'SLUICE_INVALID_OPTION';
}

const isDuration = (expected: string) => /duration/.test(expected);

/** Options of other packages that this one doesn't have. */
const OF_OTHERS: Readonly<Record<string, readonly string[]>> = {
  '@nestjs/throttler': ['throttlers', 'blockDuration', 'skipIf', 'ignoreUserAgents', 'getTracker', 'generateKey'],
  'rate-limiter-flexible': ['points', 'duration', 'storeClient', 'inMemoryBlockOnConsumed'],
};

/** Options of other packages, and their names in this one. */
const MEANT: Readonly<Record<string, string>> = {
  points: 'rate',
  requests: 'rate',
  duration: 'interval',
  windowMs: 'interval',
  keyGenerator: 'key',
  getTracker: 'key',
  generateKey: 'key',
  skipIf: 'skip',
  blockDuration: 'blockFor',
  statusCode: 'status',
};

/** The suggestion after an option of another package: how to migrate the app. */
function ofOther(option: string): string {
  const [other] = Object.entries(OF_OTHERS).find(([, options]) => options.includes(option)) ?? [];
  return other === undefined
    ? ''
    : `; '${option}' is an option of ${other}, and 'npx nestjs-sluice migrate' converts an app from it`;
}

/** The same suggestion for a value that isn't a limit or an options object, but looks like one of another package. */
function likeOther(received: unknown, depth = 2): string {
  if (typeof received !== 'object' || received === null || depth === 0) return '';
  if (Object.hasOwn(received, 'ttl') && Object.hasOwn(received, 'limit')) {
    return "; { limit, ttl } is a limit of @nestjs/throttler, and 'npx nestjs-sluice migrate' converts an app from it";
  }
  const [known] = Object.keys(received)
    .map(ofOther)
    .filter((text) => text !== '');
  return (
    known ??
    Object.values(received)
      .map((each) => likeOther(each, depth - 1))
      .find((text) => text !== '') ??
    ''
  );
}

/** Errors in options. `at` and `place` are the place of the option in the user's code. */
export const optionMessages = {
  /** A message with its place. */
  at: (location: string, message: string) => `${location}: ${message}`,
  /** A message, with a hint on migrating the app if the value looks like options of another package. */
  hinted: (message: string, received: unknown) => message + likeOther(received),
  wrong: (place: string, received: unknown, expected: string) =>
    wrongInput(place, expected, received) + nearDuration(received, expected) + byRequest(place, received),
  missing: (place: string, expected: string) => missingInput(place, expected),
  unknown: (name: string, known: readonly string[], lacking = '') => {
    const bare = unknownName('option', name, []);
    const meant = Object.hasOwn(MEANT, name) ? MEANT[name]! : '';
    if (known.includes(meant)) return `${bare}, which is '${meant}' here${ofOther(name)}`;
    const message = unknownName('option', name, known) + ofOther(name);
    return message === bare ? message + lacking : message;
  },
  likelySeconds: (place: string, received: number, limit?: string) =>
    `${place}${limit === undefined ? '' : ` (limit '${limit}')`}: received ${received}, which means milliseconds. Write '${received}s' for seconds, or '${received}ms' if you mean milliseconds`,
  misspelt: (member: string, meant: string) =>
    `unknown member '${member}'. Did you mean '${meant}'? If not, choose a name that differs more`,
  notFor: (option: string, algo: string, able: readonly string[], because?: string) =>
    `option '${option}' is not for '${algo}'${because === undefined ? '' : `, since ${because}`}: use it with ${listOf(able, 'or')}`,
  foreign: (option: string, algo: string, able: readonly string[]) =>
    `option '${option}' is not an option of '${algo}': it belongs to ${listOf(able, 'and')}`,
  /** The end of a message about an option that a limit can't have, if it lacks others, whose names the user may not know. */
  lacking: (algo: string, missing: readonly string[]) =>
    missing.length === 0 ? '' : `; '${algo}' needs ${quoted(missing, 'and')}`,
  exclude: (option: string, other: string, expected = 'only one of them') =>
    `options '${option}' and ${other} exclude each other: expected ${expected}`,
  needs: (option: string, needed: string, what: string) => `option '${option}' needs '${needed}', ${what}`,
} as const;
