import { nearest } from '../../util/nearest.js';
import { listOf, show } from '../wording.js';

/** Behind a name that is unknown: the one that was meant, if one is near. */
export function meant(got: unknown, known: readonly string[]): string {
  const near = typeof got === 'string' ? nearest(got, known) : undefined;
  return near === undefined ? '' : ` (did you mean '${near}'?)`;
}

/** What is wrong with an option. The place of the option stands before it. */
export const optionMessages = {
  /** One of these with its place. */
  at: (location: string, message: string) => `${location}: ${message}`,
  wrong: (option: string, got: unknown, wants: string) => `option '${option}' is ${show(got)}, wants ${wants}`,
  missing: (option: string, wants: string) => `option '${option}' is missing, wants ${wants}`,
  /** Behind what is unknown: the name that was meant, if one is near, and all that there are. */
  unknown: (name: string, known: readonly string[]) =>
    `is unknown${meant(name, known)}, wants only ${known.join(', ')}`,
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
