import { createHash } from 'node:crypto';

/** What decisions and the console show of an identity. */
export function hashOf(identity: string): string {
  return createHash('sha256').update(identity).digest('base64url').slice(0, 16);
}
