/** On which list something stands: `'allow'` exempts it from limits, `'deny'` refuses it. */
export type ListName = 'allow' | 'deny';

/**
 * Whom a list names: clients by their address or network, `{ ip: '203.0.113.7' }`, `{ ip: '10.0.0.0/8' }`, `{ ip: '2001:db8::/32' }`;
 * one identity that limits count by, `{ identity: 'tenant:acme' }`; or all identities that begin alike, `{ pattern: 'tenant:*' }`.
 */
export type ListEntry = AddressEntry | IdentityEntry | PatternEntry;

/** Names clients by their address. */
export interface AddressEntry {
  /** An address, or a network in CIDR notation without bits behind its prefix. */
  readonly ip: string;
  /** Is of another entry. */
  readonly identity?: never;
  /** Is of another entry. */
  readonly pattern?: never;
}

/** Names one identity. */
export interface IdentityEntry {
  /** The key, such as `'tenant:acme'`, of up to 512 characters without a star. */
  readonly identity: string;
  /** Is of another entry. */
  readonly ip?: never;
  /** Is of another entry. */
  readonly pattern?: never;
}

/** Names all identities that begin alike. */
export interface PatternEntry {
  /** The beginning of their keys with a star behind it, such as `'tenant:*'`, of up to 512 characters. */
  readonly pattern: string;
  /** Is of another entry. */
  readonly ip?: never;
  /** Is of another entry. */
  readonly identity?: never;
}

/** An entry of a list in the module's options. */
export type ConfiguredListEntry = ListEntry & {
  /**
   * The name of the limit that the entry is for: one of `define` or `forFeature`, or of the module's with a `name`.
   * @default all limits
   */
  readonly limit?: string;
  /** Why it is there: 1 to 200 characters on one line. */
  readonly reason?: string;
};

/** The module's lists. */
export interface ListsOptions {
  /**
   * Who is exempt from limits.
   * @default nobody
   */
  readonly allow?: readonly ConfiguredListEntry[];
  /**
   * Who is refused.
   * @default nobody
   */
  readonly deny?: readonly ConfiguredListEntry[];
  /**
   * The HTTP status of a request that a list refuses: 403, or 429 for answers that do not tell that somebody is on a list.
   * @default 403
   */
  readonly status?: 403 | 429;
}
