import type { InheritMode } from './override.js';

/** All overrides of a store at one moment. */
export interface OverrideSnapshot {
  /** The store's time, in milliseconds. */
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

/** The result of a change. */
export interface OverrideAnswer {
  /** Whether the change was made. */
  readonly done: boolean;
  /** The store after it. */
  readonly snapshot: OverrideSnapshot;
}

/** Keeps the overrides of rates. A failed read or write rejects with `RateLimitStoreError`. */
export interface OverrideStore {
  /** Reads the store now and after each change, until `close`. Resolves after the first read, whether it failed or not. */
  watch(onChange: (snapshot: OverrideSnapshot) => void): Promise<void>;
  read(): Promise<OverrideSnapshot>;
  write(change: OverrideChange): Promise<OverrideAnswer>;
  close(): void;
}
