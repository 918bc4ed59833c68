import type { OverrideKind } from './override-address.js';
import type { StoredRecord } from './override-record.js';

/** Holds the records of one limit, or of all, and applies them. */
export interface OverrideHolder<Kind extends OverrideKind = OverrideKind> {
  /** The number of keys that have records. */
  readonly size: number;
  /** Takes a record. Returns the time at which it expires. */
  put(kind: Kind, key: string, stored: StoredRecord | undefined, now: number): number | undefined;
  /** Ends the record of a key if it has expired. */
  expire(kind: Kind, key: string, now: number): void;
  /** Forgets all records. */
  clear(): void;
  /** Puts the records in force. */
  commit(): void;
  /** The times at which records expire. */
  expiries(): Iterable<[at: number, kind: Kind, key: string]>;
}
