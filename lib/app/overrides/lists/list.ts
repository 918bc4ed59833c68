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
   * How long the entry is in force, by the Redis server's clock: milliseconds or a duration such as `'10m'`, at most 1 year.
   * @default until `unlist`
   */
  expiresIn?: Duration;
}

/** Options for removing an entry. */
export type UnlistOptions = Omit<ListOptions, 'expiresIn'>;

/** Selects a page of list entries, or the one that decides for a client. */
export interface ListPageOptions {
  /** The address of a client, to return only the entry that decides for it. */
  ip?: string;
  /**
   * The key of an identity, such as `'tenant:acme'`, as `consume` takes it and a `KeyResolver` returns it, to return only the entry
   * that decides for it. With an `ip`, too, the stricter of the two entries decides.
   */
  key?: string;
  /**
   * The name of a limit, to return only its own entries. With `ip` or `key`: the limit for which the entry decides, by its own
   * entries and those for all limits.
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
   * The most entries of a page, at most 1,000.
   * @default 100
   */
  count?: number;
}

/** A list entry in force. */
export interface ListedEntry extends ChangeCause {
  /** Who it names; a network is in its shortest form. */
  entry: ListEntry;
  /** The list it is on. */
  list: ListName;
  /** The limit it applies to; `undefined` for all limits. */
  limit?: string;
  /** Where it comes from: the module's options, the policy, or a change while the app runs. */
  source: 'configured' | 'policy' | 'changed';
  /** With source `'policy'`: its place in the policy, such as `'limits.yaml:12:7 lists.deny[0]'`. */
  policy?: string;
  /** The number of the change that made it; `undefined` for entries of the module's options or the policy. */
  version: number | undefined;
  /** When it expires, in milliseconds since the epoch by the Redis server's clock; `undefined` if it does not. */
  expiresAt: number | undefined;
}

/** A page of list entries: those for all limits first, then by the names of limits. */
export interface ListPage {
  /** At most as many as requested. */
  entries: ListedEntry[];
  /** The `cursor` of the next page; `undefined` for the last one. */
  next: string | undefined;
}

/** What one change did to a list entry. */
export interface ChangedList {
  /** Distinguishes it from a change of a rate or a mode. */
  kind: 'list';
  /** The name of the limit it applies to; `undefined` for all limits. */
  limit?: string;
  /** Only overrides have one. */
  key?: never;
  /** Who it names. */
  entry: ListEntry;
  /** The entry before the change; `undefined` if no change had put it on a list. */
  before: ListedEntry | undefined;
  /** The entry after the change; `undefined` if it is on no list by a change. */
  after: ListedEntry | undefined;
}
