/** The list of an entry: `'allow'` exempts from limits, `'deny'` denies access. */
export type ListName = 'allow' | 'deny';

/** Both lists. */
export const LISTS: readonly ListName[] = ['allow', 'deny'];

/**
 * The clients that an entry matches: an address or network, such as `{ ip: '203.0.113.7' }`, `{ ip: '10.0.0.0/8' }` or `{ ip:
 * '2001:db8::/32' }`; one key, `{ identity: 'tenant:acme' }`; or all keys with a prefix, `{ pattern: 'tenant:*' }`.
 */
export type ListEntry = AddressEntry | IdentityEntry | PatternEntry;

/** Matches clients by their address. */
export interface AddressEntry {
  /** An address, or a network in CIDR notation whose bits after the prefix are zero. */
  readonly ip: string;
  /** Not together with `ip`. */
  readonly identity?: never;
  /** Not together with `ip`. */
  readonly pattern?: never;
}

/** Matches one key. */
export interface IdentityEntry {
  /** The key, such as `'tenant:acme'`, at most 512 characters and without a star. */
  readonly identity: string;
  /** Not together with `identity`. */
  readonly ip?: never;
  /** Not together with `identity`. */
  readonly pattern?: never;
}

/** Matches all keys with a prefix. */
export interface PatternEntry {
  /** The prefix of the keys, followed by a star, such as `'tenant:*'`; at most 512 characters. */
  readonly pattern: string;
  /** Not together with `pattern`. */
  readonly ip?: never;
  /** Not together with `pattern`. */
  readonly identity?: never;
}

/** An entry of a list in the module's options. */
export type ConfiguredListEntry = ListEntry & {
  /**
   * The name of the limit that the entry applies to: one of `define` or `forFeature`, or a limit of the module that has a `name`.
   * @default all limits
   */
  readonly limit?: string;
  /** The reason for the entry: 1 to 200 characters on one line. */
  readonly reason?: string;
};

/** The module's lists. */
export interface ListsOptions {
  /**
   * The clients that are exempt from limits.
   * @default nobody
   */
  readonly allow?: readonly ConfiguredListEntry[];
  /**
   * The clients that are denied.
   * @default nobody
   */
  readonly deny?: readonly ConfiguredListEntry[];
  /**
   * The HTTP status of denied requests: 403, or 429 for responses that do not reveal the list.
   * @default 403
   */
  readonly status?: 403 | 429;
}
