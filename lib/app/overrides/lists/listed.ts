import type { ListEntry, ListName } from '../../config/list-entry.js';
import type { OverrideRecord } from '../override-record.js';
import type { ListedEntry } from './list.js';
import { causeOf } from '../change-cause.js';
import { prefixOf } from '../override-address.js';

const OF_ADDRESSES = 'ip:';
const OF_IDENTITIES = 'key:';

/** The address of an entry's record: `ip:10.0.0.0/8`, `key:tenant:acme`, `key:tenant:*`. */
export const networkKey = (text: string) => OF_ADDRESSES + text;
export const identityKey = (key: string) => OF_IDENTITIES + key;

/** The network of an entry; `undefined` if it matches keys. */
export function networkOf(key: string): string | undefined {
  return key.startsWith(OF_ADDRESSES) ? key.slice(OF_ADDRESSES.length) : undefined;
}

/** The key of an entry, or a prefix of keys followed by a star; `undefined` if it matches addresses. */
export function identityOf(key: string): string | undefined {
  return key.startsWith(OF_IDENTITIES) ? key.slice(OF_IDENTITIES.length) : undefined;
}

/** The public form of an entry. */
export function entryOf(key: string): ListEntry {
  const ip = networkOf(key);
  if (ip !== undefined) return { ip };
  const identity = identityOf(key) ?? key;
  return prefixOf(identity) === undefined ? { identity } : { pattern: identity };
}

/** A current entry: from the module's options, from the policy, or added at run time. */
export interface Listed {
  readonly key: string;
  readonly list: ListName;
  readonly record: OverrideRecord | undefined;
  /** The reason, for an entry of the options or the policy. */
  readonly reason?: string | undefined;
  /** Its place in the policy. */
  readonly policy?: string;
}

/** The entry of a record; `undefined` if the record no longer has one. */
export function listedBy(key: string, record: OverrideRecord): Listed | undefined {
  return record.list ? { key, list: record.list, record } : undefined;
}

/** The public form of an entry, with its origin. */
export function listedEntry(
  limit: string,
  { key, list, record, policy, reason = record?.reason }: Listed,
): ListedEntry {
  return {
    entry: entryOf(key),
    list,
    ...(limit === '' ? {} : { limit }),
    source: record !== undefined ? 'changed' : policy === undefined ? 'configured' : 'policy',
    ...(policy === undefined ? {} : { policy }),
    version: record?.version,
    expiresAt: record?.expiresAt ?? undefined,
    ...causeOf({ by: record?.by, reason }),
  };
}
