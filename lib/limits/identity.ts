import { createHash } from 'node:crypto';

/** Identities up to this length stand for themselves; a longer one is known by its hash, so that none takes more memory. */
export const LONGEST_IDENTITY = 64;

/** The hash of an identity. UTF-16 tells apart what UTF-8 would merge: unpaired surrogates. */
export function hashIdentity(identity: string): string {
  return createHash('sha256').update(identity, 'utf16le').digest('base64url');
}

/** An identity as a map's key holds it: bounded, and never equal to that of another. */
export function boundedIdentity(identity: string): string {
  return identity.length <= LONGEST_IDENTITY ? `\n${identity}` : `\r${hashIdentity(identity)}`;
}

/** Identities that stand in a key as they are; all others are hashed, behind a sign that none of these holds. */
const PLAIN = /^[\w.:@-]{1,64}$/;

/** An identity as a key holds it: bounded, of plain characters, and never equal to that of another. */
export function plainIdentity(identity: string): string {
  return PLAIN.test(identity) ? identity : `#${hashIdentity(identity)}`;
}
