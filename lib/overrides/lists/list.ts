import type { Duration } from '../../algorithms/options.js';
import type { ListEntry, ListName } from '../../config/list-entry.js';
import type { ChangeCause } from '../change-cause.js';

/** Options of an entry of a list. */
export interface ListOptions extends ChangeCause {
  /**
   * The name of the limit that the entry is for.
   * @default all limits
   */
  limit?: string;
  /**
   * How long the entry holds: milliseconds or a duration such as `'10m'`, at most 1 year, by the Redis server's clock.
   * @default until `unlist`
   */
  expiresIn?: Duration;
}

/** Options of the end of an entry. */
export type UnlistOptions = Omit<ListOptions, 'expiresIn'>;

/** Of whom lists are asked. */
export interface ListQuery {
  /** The address of a client. */
  ip?: string;
  /** The key of an identity, such as `'tenant:acme'`, as `consume` takes it and a `KeyResolver` gives it. */
  key?: string;
  /**
   * The name of a limit.
   * @default only entries for all limits are looked at
   */
  limit?: string;
}

/** A page of the entries of lists. */
export interface ListPageOptions {
  /**
   * The name of a limit, whose own entries are given.
   * @default the entries of all limits and of each
   */
  limit?: string;
  /**
   * One of the lists.
   * @default both
   */
  list?: ListName;
  /** The `next` of the page before. */
  cursor?: string;
  /**
   * The most entries of a page, at most 1,000.
   * @default 100
   */
  count?: number;
}

/** An entry of a list that is in force. */
export interface ListedEntry extends ChangeCause {
  /** Whom it names: a network in its shortest form. */
  entry: ListEntry;
  /** On which list it stands. */
  list: ListName;
  /** The limit that it is for; `undefined` for all limits. */
  limit?: string;
  /** From where it is: the module's options, the policy, or a change while the app runs. */
  source: 'configured' | 'policy' | 'changed';
  /** With source `'policy'`: where the policy says it, such as `'limits.yaml:12:7 lists.deny[0]'`. */
  policy?: string;
  /** The number of the change that made it; `undefined` for one of the module's options or the policy. */
  version: number | undefined;
  /** When it ends, in milliseconds since the epoch on the Redis server's clock; `undefined` without an end. */
  expiresAt: number | undefined;
}

/** Some entries of lists: those of all limits first, then by the limits' names. */
export interface ListPage {
  /** At most as many as were asked for. */
  entries: ListedEntry[];
  /** The `cursor` of the next page; `undefined` for the last one. */
  next: string | undefined;
}

/** What a change made of an entry of a list. */
export interface ChangedList {
  /** Tells it from a change of a rate or a mode. */
  kind: 'list';
  /** The limit's name; `undefined` for lists of all limits. */
  limit?: string;
  /** Is of overrides alone. */
  key?: never;
  /** Whom it names. */
  entry: ListEntry;
  /** Where it stood before by a change; `undefined` if no change put it on a list. */
  before: ListedEntry | undefined;
  /** Where it stands after it; `undefined` likewise. */
  after: ListedEntry | undefined;
}
