import { createHash } from 'node:crypto';

/** The hash of an identity that decisions and the console show. */
export function hashOf(identity: string): string {
  return createHash('sha256').update(identity).digest('base64url').slice(0, 16);
}
