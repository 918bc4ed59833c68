import { createHash } from 'node:crypto';
import type { KeyScheme } from './key-scheme.js';

/** The name of an HTTP header (RFC 9110). */
const HEADER = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/;

/** Counts by the value of a request header. It may be a secret, such as an API key, so only its hash leaves the process. */
export const headerKey: KeyScheme<`header:${string}`, string> = {
  form: "'header:<name>'",
  parse: (key) => (typeof key === 'string' ? HEADER.exec(key)?.[1] : undefined),
  describe: (header, name) => ({ name, noun: `header '${header}'` }),
  needsRoute: false,
  isPure: true,
  resolve(header) {
    const lowerCase = header.toLowerCase();
    return (_, { request }) => {
      const value = request?.headers?.[lowerCase];
      const text = Array.isArray(value) ? value.join(', ') : value;
      if (typeof text !== 'string' || text === '') return undefined;
      return `header:${lowerCase}:${createHash('sha256').update(text).digest('base64url')}`;
    };
  },
};
