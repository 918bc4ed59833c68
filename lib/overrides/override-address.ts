import { messages } from '../errors/messages/general.js';

/** What an override of a limit changes. */
export type LimitOverrideKind = 'rate' | 'mode';

/** What is changed: of a limit, or who stands on a list. */
export type OverrideKind = LimitOverrideKind | 'list';

/** The kinds, and the fields of their records that hold the value. */
export const VALUE_FIELDS = { rate: 'patch', mode: 'mode', list: 'list' } as const satisfies Record<
  OverrideKind,
  string
>;

/** Of which identities of a limit an override holds. */
export interface OverrideAddress {
  readonly kind: OverrideKind;
  /** The limit's name, in which no line feed can be; empty for lists of all limits. */
  readonly limit: string;
  /** The key of an identity, or the beginning of keys with a star behind it; empty for all. Of lists, the entry. */
  readonly key: string;
}

/** The field under which an override is stored. */
export function fieldOf({ kind, limit, key }: OverrideAddress): string {
  return `${kind}\n${limit}\n${key}`;
}

/** Reads a stored field; `undefined` if another release wrote it for what this one does not know. */
export function addressOf(field: string): OverrideAddress | undefined {
  const [kind = '', limit = ''] = field.split('\n', 2);
  if (!Object.hasOwn(VALUE_FIELDS, kind) || field.length < kind.length + limit.length + 2) return undefined;
  return { kind: kind as OverrideKind, limit, key: field.slice(kind.length + limit.length + 2) };
}

/** The beginning of the keys that a key with a trailing star stands for; `undefined` for the key of one identity. */
export function prefixOf(key: string): string | undefined {
  return key.endsWith('*') ? key.slice(0, -1) : undefined;
}

/** The longest key, in characters. */
export const LONGEST_KEY = 512;

/** Whether a key is of one identity, or of those that begin alike. */
export function isOverrideKey(key: unknown): key is string {
  if (typeof key !== 'string' || key === '' || key === '*' || key.length > LONGEST_KEY) return false;
  // Redis would store another text in place of an unpaired surrogate.
  return !key.slice(0, -1).includes('*') && !/\p{Surrogate}/u.test(key);
}

export const KEY_WANTS = messages.overrideKeyWants(LONGEST_KEY);
