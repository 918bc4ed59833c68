import type { Duration } from '../../../engine/options/values.js';
import type { ListEntry, ListName } from '../../config/list-entry.js';
import type { ChangeCause } from '../change-cause.js';

/** Options of a list entry. */
export interface ListOptions extends ChangeCause {
  /**
   * The name of the limit that the entry applies to.
   * @default all limits
   */
  limit?: string;
  /**
   * The time until the entry expires, by the Redis server's clock: milliseconds or a duration such as `'10m'`, at most 1 year.
   * @default until `unlist`
   */
  expiresIn?: Duration;
}

/** Options for removing an entry. */
export type UnlistOptions = Omit<ListOptions, 'expiresIn'>;

/** Selects a page of list entries, or the one that decides for a client. */
export interface ListPageOptions {
  /** The address of a client: returns only the entry that decides for it. */
  ip?: string;
  /**
   * A key such as `'tenant:acme'`, in the form that `consume` takes and a `KeyResolver` returns: returns only the entry that decides for
   * it. Together with an `ip`, the stricter of the two entries is returned.
   */
  key?: string;
  /**
   * The name of a limit: returns only its own entries. With `ip` or `key`, the limit for which the entry decides, based on its own entries
   * and those for all limits.
   * @default entries for all limits and for each limit; with `ip` or `key`, those for all limits
   */
  limit?: string;
  /**
   * One of the lists.
   * @default both
   */
  list?: ListName;
  /** The `next` of the previous page. */
  cursor?: string;
  /**
   * The maximum number of entries per page, at most 1,000.
   * @default 100
   */
  count?: number;
}

/** A current list entry. */
export interface ListedEntry extends ChangeCause {
  /** The clients that the entry matches; a network is in its shortest form. */
  entry: ListEntry;
  /** The list it is on. */
  list: ListName;
  /** The limit it applies to; `undefined` for all limits. */
  limit?: string;
  /** The source of the entry: the module's options, the policy, or a change at run time. */
  source: 'configured' | 'policy' | 'changed';
  /** The place in the policy, such as `'limits.yaml:12:7 lists.deny[0]'`, if the source is `'policy'`. */
  policy?: string;
  /** The version of the change that made it; `undefined` for entries of the module's options or the policy. */
  version: number | undefined;
  /** The time at which it expires, in milliseconds since the epoch by the Redis server's clock; `undefined` if it does not expire. */
  expiresAt: number | undefined;
}

/** A page of list entries: those for all limits first, then by the names of limits. */
export interface ListPage {
  /** At most the requested number of entries. */
  entries: ListedEntry[];
  /** The `cursor` of the next page; `undefined` for the last one. */
  next: string | undefined;
}

/** A list entry before and after a change. */
export interface ChangedList {
  /** Distinguishes this type from changes of a rate or a mode. */
  kind: 'list';
  /** The name of the limit it applies to; `undefined` for all limits. */
  limit?: string;
  /** Only overrides have a key. */
  key?: never;
  /** The clients that the entry matches. */
  entry: ListEntry;
  /** The entry before the change; `undefined` if no earlier change had added one. */
  before: ListedEntry | undefined;
  /** The entry after the change; `undefined` if the change removed it. */
  after: ListedEntry | undefined;
}
