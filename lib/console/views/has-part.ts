/** The separators between parts of identities. */
const PART_ENDS = '|:/,; ';

/**
 * Returns true if a text is one of the parts of an identity, such as the account in `ann@x.com|203.0.113.7`. Only whole parts match:
 * otherwise users who see only hashes could guess identities letter by letter.
 */
export function hasPart(identity: string, part: string): boolean {
  for (let at = identity.indexOf(part); at >= 0; at = identity.indexOf(part, at + 1)) {
    const [before, after] = [identity[at - 1], identity[at + part.length]];
    if ([before, after].every((next) => next === undefined || PART_ENDS.includes(next))) return true;
  }
  return false;
}
