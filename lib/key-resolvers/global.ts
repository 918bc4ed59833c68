import type { KeyScheme } from './key-scheme.js';

/** Counts all requests together. */
export const globalKey: KeyScheme<'global', true> = {
  form: "'global'",
  parse: (key) => key === 'global' || undefined,
  describe: (_, name) => ({ name, noun: 'key' }),
  needsRoute: false,
  isPure: true,
  resolve: () => () => 'global',
};
