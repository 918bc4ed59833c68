import { createHash } from 'node:crypto';

/** Identities up to this length are stored in plain text. Longer ones are hashed, which bounds their memory. */
export const LONGEST_IDENTITY = 64;

/** The hash of an identity. It is based on UTF-16, because UTF-8 would merge unpaired surrogates. */
export function hashIdentity(identity: string): string {
  return createHash('sha256').update(identity, 'utf16le').digest('base64url');
}

/** An identity as the key of a map: bounded, and different for different identities. */
export function boundedIdentity(identity: string): string {
  return identity.length <= LONGEST_IDENTITY ? `\n${identity}` : `\r${hashIdentity(identity)}`;
}

/** Identities that appear in Redis keys as plain text. All others are hashed, with a prefix that none of these contains. */
const PLAIN = /^[\w.:@-]{1,64}$/;

/** An identity as part of a Redis key: bounded, made of plain characters, and different for different identities. */
export function plainIdentity(identity: string): string {
  return PLAIN.test(identity) ? identity : `#${hashIdentity(identity)}`;
}
