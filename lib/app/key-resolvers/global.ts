import { isIP } from 'node:net';
import { keyMessages } from '../../engine/errors/messages/key.js';
import { BUILT_IN } from './built-in.js';
import type { KeyScheme } from './key-scheme.js';

/** Counts all requests together. */
export const globalKey: KeyScheme<'global', true> = {
  form: "'global'",
  parse: (key) => key === 'global' || undefined,
  describe: (_, name) => ({ name, noun: 'key' }),
  needsRoute: false,
  isPure: true,
  // Code often counts by keys of its own with such a limit, but never by the built-in keys.
  formOf: () => ({
    begins: 'global',
    isOne: (text) => !BUILT_IN.test(text) && isIP(text) === 0,
    mayBegin: (text) => !BUILT_IN.test(text),
    expected: keyMessages.global,
  }),
  resolve: () => () => 'global',
};
