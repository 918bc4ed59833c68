import type { OverrideKind } from './override-address.js';
import type { StoredRecord } from './override-record.js';

/** Stores and applies the records of one limit, or of all limits. */
export interface OverrideHolder<Kind extends OverrideKind = OverrideKind> {
  /** The number of keys that have records. */
  readonly size: number;
  /** Takes a record. Returns the time at which it expires. */
  put(kind: Kind, key: string, stored: StoredRecord | undefined, now: number): number | undefined;
  /** Ends the record of a key if it has expired. */
  expire(kind: Kind, key: string, now: number): void;
  /** Drops all records. */
  clear(): void;
  /** Applies the records. */
  commit(): void;
  /** The times at which records expire. */
  expiries(): Iterable<[at: number, kind: Kind, key: string]>;
}
