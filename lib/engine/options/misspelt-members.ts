import { RateLimitConfigError } from '../errors/errors.js';
import { optionMessages } from '../errors/messages/options.js';
import { editsBetween } from '../errors/wording.js';

/**
 * Throws `RateLimitConfigError` if an instance of the app has a member whose name is almost that of an optional one, and lacks that one.
 * All other members are allowed.
 */
export function refuseMisspelt(location: string, instance: object, optional: readonly string[]): void {
  const lacking = optional.filter((member) => !(member in instance));
  for (const member of lacking.length === 0 ? [] : membersOf(instance)) {
    const meant = lacking.find((each) => isAlmost(member, each));
    if (meant !== undefined) {
      throw new RateLimitConfigError(optionMessages.at(location, optionMessages.misspelt(member, meant)), {
        code: 'SLUICE_UNKNOWN_OPTION',
      });
    }
  }
}

/** Returns true if one letter is missing, added, replaced or swapped, or letters differ only in case. */
function isAlmost(member: string, known: string): boolean {
  if (member.toLowerCase() === known.toLowerCase()) return true;
  // Many short words are only one letter apart, for example `ttl` and `tls`.
  const isReplaced = member.length === known.length && Array.from(member).some((letter) => !known.includes(letter));
  return editsBetween(member, known) === 1 && !(isReplaced && known.length < 5);
}

/** The names of an instance's own members, and of those of its classes. */
function membersOf(instance: object): string[] {
  const members: string[] = [];
  for (
    let of: object | null = instance;
    of !== null && of !== Object.prototype;
    of = Object.getPrototypeOf(of) as object
  ) {
    members.push(...Object.getOwnPropertyNames(of));
  }
  return members;
}
