import { createHash } from 'node:crypto';

/** Identities up to this length are stored in plain text; longer ones are hashed, so that none takes more memory. */
export const LONGEST_IDENTITY = 64;

/** The hash of an identity. UTF-16 distinguishes what UTF-8 would merge: unpaired surrogates. */
export function hashIdentity(identity: string): string {
  return createHash('sha256').update(identity, 'utf16le').digest('base64url');
}

/** An identity as the key of a map: bounded, and never equal to that of another. */
export function boundedIdentity(identity: string): string {
  return identity.length <= LONGEST_IDENTITY ? `\n${identity}` : `\r${hashIdentity(identity)}`;
}

/** Identities that are used in keys in plain text; all others are hashed, behind a character that none of these contains. */
const PLAIN = /^[\w.:@-]{1,64}$/;

/** An identity as part of a key: bounded, of plain characters, and never equal to that of another. */
export function plainIdentity(identity: string): string {
  return PLAIN.test(identity) ? identity : `#${hashIdentity(identity)}`;
}
