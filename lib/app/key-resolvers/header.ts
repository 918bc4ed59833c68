import { createHash } from 'node:crypto';
import { keyMessages } from '../../engine/errors/messages/key.js';
import { headerOf } from '../transports/header-of.js';
import type { KeyScheme } from './key-scheme.js';

/** The name of an HTTP header (RFC 9110). */
const HEADER = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/;

/** A SHA-256 in base64url. */
const HASH = /^[\w-]{43}$/;

/**
 * Counts by the value of a request header. The value may be a secret, such as an API key, so only its hash leaves the process.
 */
export const headerKey: KeyScheme<`header:${string}`, string> = {
  form: "'header:<name>'",
  parse: (key) => (typeof key === 'string' ? HEADER.exec(key)?.[1] : undefined),
  describe: (header, name) => ({ name, noun: `header '${header}'` }),
  needsRoute: false,
  isPure: true,
  identityOf: (header, value) =>
    value.startsWith(`header:${header.toLowerCase()}:`) ? value : headerIdentity(header, value),
  formOf(header) {
    const begins = `header:${header.toLowerCase()}:`;
    return {
      begins,
      isOne: (text) => text.startsWith(begins) && HASH.test(text.slice(begins.length)),
      expected: () => keyMessages.headerValue(header),
    };
  },
  resolve(header) {
    const lowerCase = header.toLowerCase();
    return (_, { request }) => {
      const value = headerOf(request?.headers, lowerCase);
      return value === undefined || value === '' ? undefined : headerIdentity(lowerCase, value);
    };
  },
};

/** A value of a header that somebody has written down with the header's name: `header:x-api-key:<value>`. */
const WITH_NAME = /^(header:([^:]+)):(.+)$/s;

/** An identity that somebody has written down: the value of a header is hashed, unless it is a hash, or a beginning with a star. */
export function hashedHeader(identity: string): string {
  const [, key = '', header = '', value = ''] = WITH_NAME.exec(identity) ?? [];
  if (!HEADER.test(key) || value.endsWith('*')) return identity;
  return HASH.test(value) ? `header:${header.toLowerCase()}:${value}` : headerIdentity(header, value);
}

/**
 * Returns the identity that `key: 'header:<name>'` makes of a value, for calls that take a key, such as `setRate`, `deny` and
 * `explain`: `header:x-api-key:` and the SHA-256 of the value, in base64url.
 *
 * @param header the name of the header, in upper or lower case
 * @param value the value as a client sends it
 */
export function headerIdentity(header: string, value: string): string {
  return `header:${header.toLowerCase()}:${createHash('sha256').update(value).digest('base64url')}`;
}
