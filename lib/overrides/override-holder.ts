import type { OverrideKind } from './override-address.js';
import type { StoredRecord } from './override-record.js';

/** What holds records of one limit, or of all, and what they make of it. */
export interface OverrideHolder<Kind extends OverrideKind = OverrideKind> {
  /** How many keys have records. */
  readonly size: number;
  /** Takes a record over. Returns the time at which it ends. */
  put(kind: Kind, key: string, stored: StoredRecord | undefined, now: number): number | undefined;
  /** Ends the record of a key, if its time is over. */
  expire(kind: Kind, key: string, now: number): void;
  /** Forgets all records. */
  clear(): void;
  /** Lets decide what the records make. */
  commit(): void;
  /** The times at which records end. */
  expiries(): Iterable<[at: number, kind: Kind, key: string]>;
}
