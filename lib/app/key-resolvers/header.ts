import { keyMessages } from '../../engine/errors/messages/calls.js';
import { headerIdentity, headerOfKey } from '../../engine/limits/identity.js';
import { headerOf } from '../transports/request-reader.js';
import type { KeyScheme } from './key-scheme.js';

/** A SHA-256 in base64url. */
const HASH = /^[\w-]{43}$/;

/** Counts per value of a request header. The value may be a secret, such as an API key, so only its hash leaves the process. */
export const headerKey: KeyScheme<`header:${string}`, string> = {
  form: "'header:<name>'",
  parse: headerOfKey,
  describe: (header, name) => ({ name, noun: `header '${header}'` }),
  needsRoute: false,
  isPure: true,
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

/** Matches a header's name and value, as an operator would write them: `header:x-api-key:<value>`. */
const WITH_NAME = /^(header:([^:]+)):(.+)$/s;

/** Hashes the header value in an identity that an operator has written, unless it is a hash already or a prefix with a star. */
export function hashedHeader(identity: string): string {
  const [, key = '', header = '', value = ''] = WITH_NAME.exec(identity) ?? [];
  if (headerOfKey(key) === undefined || value.endsWith('*')) return identity;
  return HASH.test(value) ? `header:${header.toLowerCase()}:${value}` : headerIdentity(header, value);
}
