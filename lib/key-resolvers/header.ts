import { createHash } from 'node:crypto';
import type { Identify } from './key-resolver.js';

/** Counts by the value of a request header. It may be a secret, such as an API key, so only its hash leaves the process. */
export function byHeader(name: string): Identify {
  const lowerCase = name.toLowerCase();
  return (_, { request }) => {
    const value = request?.headers?.[lowerCase];
    const text = Array.isArray(value) ? value.join(', ') : value;
    if (typeof text !== 'string' || text === '') return undefined;
    return `header:${lowerCase}:${createHash('sha256').update(text).digest('base64url')}`;
  };
}
