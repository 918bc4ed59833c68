import { editsBetween, nearest } from '../../util/nearest.js';
import { durationHint } from '../../options/values.js';
import { listOf, show } from '../wording.js';

/** Behind a name that is unknown: the one that was meant, if one is near. */
export function meant(got: unknown, known: readonly string[]): string {
  const near = typeof got === 'string' ? nearest(got, known) : undefined;
  return near === undefined ? '' : ` (did you mean '${near}'?)`;
}

/** Behind a name that is right in another place: one that differs by a letter, such as `limit` and `limits`. */
export function almost(name: string, known: readonly string[]): string {
  const near = known.find((each) => editsBetween(name, each) === 1);
  return near === undefined ? '' : ` (did you mean '${near}'?)`;
}

/** Behind a value that is almost a duration, where one is expected. */
export function nearDuration(got: unknown, wants: string): string {
  return /duration/.test(wants) ? durationHint(got) : '';
}

/** Options that other packages have, and this one has not. */
const OF_OTHERS: Readonly<Record<string, readonly string[]>> = {
  '@nestjs/throttler': ['throttlers', 'blockDuration', 'skipIf', 'ignoreUserAgents', 'getTracker', 'generateKey'],
  'rate-limiter-flexible': ['points', 'duration', 'storeClient', 'inMemoryBlockOnConsumed'],
};

/** Behind an option of another package: how to move the app. */
function ofOther(option: string): string {
  const [other] = Object.entries(OF_OTHERS).find(([, options]) => options.includes(option)) ?? [];
  return other === undefined
    ? ''
    : `; '${option}' is an option of ${other}, from which 'npx nestjs-sluice migrate' moves an app`;
}

/** The same behind what is no limit, or no options, but looks like those of another package. */
function likeOther(got: unknown, depth = 2): string {
  if (typeof got !== 'object' || got === null || depth === 0) return '';
  if (Object.hasOwn(got, 'ttl') && Object.hasOwn(got, 'limit')) {
    return "; { limit, ttl } is a limit of @nestjs/throttler, from which 'npx nestjs-sluice migrate' moves an app";
  }
  const [known] = Object.keys(got)
    .map(ofOther)
    .filter((text) => text !== '');
  return (
    known ??
    Object.values(got)
      .map((each) => likeOther(each, depth - 1))
      .find((text) => text !== '') ??
    ''
  );
}

/** What is wrong with an option. The place of the option stands before it. */
export const optionMessages = {
  /** One of these with its place. */
  at: (location: string, message: string) => `${location}: ${message}`,
  /** A message, and how to move the app if what it got looks like options of another package. */
  hinted: (message: string, got: unknown) => message + likeOther(got),
  wrong: (option: string, got: unknown, wants: string) =>
    `option '${option}' is ${show(got)}, wants ${wants}${nearDuration(got, wants)}`,
  missing: (option: string, wants: string) => `option '${option}' is missing, wants ${wants}`,
  /** Behind what is unknown: the name that was meant, if one is near, and all that there are. */
  unknown: (name: string, known: readonly string[]) =>
    `is unknown${meant(name, known)}, wants only ${known.join(', ')}${ofOther(name)}`,
  likelySeconds: (location: string, option: string, got: number) =>
    `${location}: option '${option}' is ${got}, and numbers are milliseconds; wants '${got}s' if seconds are meant, else '${got}ms'`,
  misspelt: (member: string, meant: string) =>
    `member '${member}' is almost '${meant}', wants '${meant}', or a name that differs more`,
  notFor: (option: string, algo: string, able: readonly string[], because?: string) =>
    `option '${option}' is not for '${algo}'${because === undefined ? '' : `, since ${because}`}; wants it with ${listOf(able, 'or')}`,
  foreign: (option: string, algo: string, own: readonly string[], able: readonly string[]) =>
    `option '${option}' is not one of '${algo}' (it belongs to ${able.join(', ')}), wants only ${own.join(', ')}`,
  exclude: (option: string, other: string, wants = 'one of them') =>
    `options '${option}' and ${other} exclude each other, wants ${wants}`,
  needs: (option: string, needed: string, what: string) => `option '${option}' needs '${needed}', ${what}`,
} as const;
