import { isIP } from 'node:net';
import { keyMessages } from '../../engine/errors/messages/calls.js';
import type { KeyScheme } from './key-scheme.js';

/** The prefixes of the built-in keys. */
export const BUILT_IN = /^(?:ip|user|header):/;

/** Counts all requests together. */
export const globalKey: KeyScheme<'global', true> = {
  form: "'global'",
  parse: (key) => key === 'global' || undefined,
  describe: (_, name) => ({ name, noun: 'key' }),
  needsRoute: false,
  isPure: true,
  // Code often uses its own keys with such a limit, but never the built-in ones.
  formOf: () => ({
    begins: 'global',
    isOne: (text) => !BUILT_IN.test(text) && isIP(text) === 0,
    mayBegin: (text) => !BUILT_IN.test(text),
    expected: keyMessages.global,
  }),
  resolve: () => () => 'global',
};
