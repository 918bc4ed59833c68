import { keyMessages } from '../../engine/errors/messages/calls.js';
import { isRecord } from '../../engine/util/objects.js';
import type { KeyScheme } from './key-scheme.js';

/** Counts per authenticated user: the `id`, `sub` or `userId` of `request.user`, or `request.user` itself. */
export const userKey: KeyScheme<'user', true> = {
  form: "'user'",
  parse: (key) => key === 'user' || undefined,
  describe: (_, name) => ({ name, noun: 'user' }),
  needsRoute: true,
  needsUser: true,
  isPure: true,
  formOf: () => ({
    begins: 'user:',
    isOne: (text) => text.startsWith('user:') && text.length > 'user:'.length,
    expected: keyMessages.user,
  }),
  resolve:
    () =>
    (_, { request }) => {
      const user = request?.user;
      const id = idOf(user) ?? (isRecord(user) ? (idOf(user.id) ?? idOf(user.sub) ?? idOf(user.userId)) : undefined);
      return id === undefined ? undefined : `user:${id}`;
    },
};

function idOf(value: unknown): string | undefined {
  if (typeof value === 'string' && value !== '') return value;
  return Number.isFinite(value) || typeof value === 'bigint' ? String(value) : undefined;
}
