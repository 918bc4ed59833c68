import { messages } from '../../engine/errors/messages/general.js';

/** The setting that an override of a limit changes. */
export type LimitOverrideKind = 'rate' | 'mode';

/** The kind of a change: a setting of a limit, or a list entry. */
export type OverrideKind = LimitOverrideKind | 'list';

/** The kinds, with the field of their records that contains the value. */
export const VALUE_FIELDS = { rate: 'patch', mode: 'mode', list: 'list' } as const satisfies Record<
  OverrideKind,
  string
>;

/** Identifies an override: its kind, its limit and the keys that it applies to. */
export interface OverrideAddress {
  readonly kind: OverrideKind;
  /** The limit's name, which cannot contain a line feed; empty for lists for all limits. */
  readonly limit: string;
  /** A key, or a prefix of keys followed by a star; empty for all keys. For lists, the entry. */
  readonly key: string;
}

/** The field under which an override is stored. */
export function fieldOf({ kind, limit, key }: OverrideAddress): string {
  return `${kind}\n${limit}\n${key}`;
}

/** Reads a stored field; `undefined` if another release wrote it for a kind that this one doesn't know. */
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

/** The prefix of a key with a trailing star; `undefined` for a single key. */
export function prefixOf(key: string): string | undefined {
  return key.endsWith('*') ? key.slice(0, -1) : undefined;
}

/** The maximum length of a key, in characters. */
export const LONGEST_KEY = 512;

/** Returns true if a text is a valid key, or a prefix followed by a star. */
export function isOverrideKey(key: unknown): key is string {
  if (typeof key !== 'string' || key === '' || key === '*' || key.length > LONGEST_KEY) return false;
  // Redis would store a different text for an unpaired surrogate.
  return !key.slice(0, -1).includes('*') && !/\p{Surrogate}/u.test(key);
}

export const KEY_EXPECTED = messages.overrideKeyExpected(LONGEST_KEY);
