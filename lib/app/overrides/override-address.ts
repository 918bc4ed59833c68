import { messages } from '../../engine/errors/messages/general.js';

/** What an override of a limit changes. */
export type LimitOverrideKind = 'rate' | 'mode';

/** What is changed: something about a limit, or who is on a list. */
export type OverrideKind = LimitOverrideKind | 'list';

/** The kinds, with the field of their records that holds the value. */
export const VALUE_FIELDS = { rate: 'patch', mode: 'mode', list: 'list' } as const satisfies Record<
  OverrideKind,
  string
>;

/** The identities of a limit to which an override applies. */
export interface OverrideAddress {
  readonly kind: OverrideKind;
  /** The limit's name, which cannot contain a line feed; empty for lists for all limits. */
  readonly limit: string;
  /** The key of an identity, or a prefix of keys followed by a star; empty for all. For lists, the entry. */
  readonly key: string;
}

/** The field under which an override is stored. */
export function fieldOf({ kind, limit, key }: OverrideAddress): string {
  return `${kind}\n${limit}\n${key}`;
}

/** Reads a stored field; `undefined` if another release wrote it for something unknown to this one. */
export function addressOf(field: string): OverrideAddress | undefined {
  const afterKind = field.indexOf('\n');
  const afterLimit = field.indexOf('\n', afterKind + 1);
  const kind = field.slice(0, afterKind);
  if (afterKind < 0 || afterLimit < 0 || !Object.hasOwn(VALUE_FIELDS, kind)) return undefined;
  return {
    kind: kind as OverrideKind,
    limit: field.slice(afterKind + 1, afterLimit),
    key: field.slice(afterLimit + 1),
  };
}

/** The prefix of a key with a trailing star; `undefined` for the key of one identity. */
export function prefixOf(key: string): string | undefined {
  return key.endsWith('*') ? key.slice(0, -1) : undefined;
}

/** The longest key, in characters. */
export const LONGEST_KEY = 512;

/** Whether a key is that of one identity, or a prefix followed by a star. */
export function isOverrideKey(key: unknown): key is string {
  if (typeof key !== 'string' || key === '' || key === '*' || key.length > LONGEST_KEY) return false;
  // Redis would store a different text for an unpaired surrogate.
  return !key.slice(0, -1).includes('*') && !/\p{Surrogate}/u.test(key);
}

export const KEY_EXPECTED = messages.overrideKeyExpected(LONGEST_KEY);
