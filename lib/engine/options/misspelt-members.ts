import { RateLimitConfigError } from '../errors/errors.js';
import { optionMessages } from '../errors/messages/options.js';
import { editsBetween } from '../util/nearest.js';

/**
 * Refuses members of an instance of the app that are almost an optional one, which it lacks. Its class may have any other members of
 * its own. Throws `RateLimitConfigError`.
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

/** Whether one letter is missing, added, replaced or swapped, or letters differ only in case. */
function isAlmost(member: string, known: string): boolean {
  if (member.toLowerCase() === known.toLowerCase()) return true;
  // Many short words are one letter from another: `ttl` and `tls` are, too.
  const isReplaced = member.length === known.length && Array.from(member).some((letter) => !known.includes(letter));
  return editsBetween(member, known) === 1 && !(isReplaced && known.length < 5);
}

/** The names of its own members, and of those of its classes. */
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
