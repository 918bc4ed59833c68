import type { InheritMode } from './override.js';

/** Everything that a book holds at one moment. */
export interface OverrideSnapshot {
  /** The book's time in milliseconds. */
  readonly now: number;
  /** Each limit's record, as JSON. */
  readonly records: ReadonlyMap<string, string>;
}

/** A change of one limit's rate. */
export interface OverrideChange {
  /** `'try'` changes it only where no patch is in force, `'clear'` only where one is. */
  readonly operation: 'set' | 'try' | 'clear';
  readonly name: string;
  /** JSON; `'null'` to clear. */
  readonly patch: string;
  readonly inherit: InheritMode;
  /** In milliseconds; 0 is for ever. */
  readonly lastsMs: number;
  /** The limit's quota under the patch. */
  readonly quota: number;
  /** The limit's quota as configured. */
  readonly configuredQuota: number;
}

/** What came of a change. */
export interface OverrideAnswer {
  /** Whether it was made. */
  readonly done: boolean;
  /** The book after it. */
  readonly snapshot: OverrideSnapshot;
}

/** Where changed rates are kept. What cannot be read or written rejects with `RateLimitStoreError`. */
export interface OverrideStore {
  /** Reads the book now and whenever it changes, until it is closed. Resolves when it was first read, or could not be. */
  watch(changed: (page: OverrideSnapshot) => void): Promise<void>;
  read(): Promise<OverrideSnapshot>;
  write(change: OverrideChange): Promise<OverrideAnswer>;
  close(): void;
}
