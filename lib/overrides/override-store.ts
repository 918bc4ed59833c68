import type { OverrideAddress } from './override-address.js';
import type { StoredRecord } from './override-record.js';
import type { InheritMode } from './override.js';

/** Records that changed, by the fields of their addresses. */
export interface OverrideUpdate {
  /** The store's time, in milliseconds. */
  readonly now: number;
  /** Whether these are all records there are. */
  readonly complete: boolean;
  /** The records; `undefined` for one that is gone. */
  readonly records: ReadonlyMap<string, StoredRecord | undefined>;
}

/** A change of one override. */
export interface OverrideItem extends OverrideAddress {
  /** JSON; `'null'` to clear it. */
  readonly value: string;
  readonly inherit: InheritMode;
  /** When it ends: `+` and milliseconds from now, milliseconds since the epoch, or `null`. */
  readonly ends: string;
  /** The limit's quota under the override. */
  readonly quota: number;
  /** The limit's quota before it, unless an override is in force that says it. */
  readonly previousQuota: number;
}

/** What a change has besides its value where that is no rate: quotas are of rates. */
export const WITHOUT_QUOTA = { inherit: 'keep', quota: 0, previousQuota: 0 } as const;

/** A change that is made as a whole. */
export interface OverrideChange {
  /**
   * `'try'` changes only where nothing is in force, `'clear'` only where something is; `'restore'` only if `lastVersion` is the
   * last change, and leaves generations as they are.
   */
  readonly operation: 'set' | 'try' | 'clear' | 'restore';
  readonly items: readonly OverrideItem[];
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  readonly lastVersion?: number;
  /** The change that is gone back to. */
  readonly rollbackTo?: number;
}

/** What one override was before a change, and is after it: a record, or `null`. */
export interface ChangedOverride extends OverrideAddress {
  readonly before: unknown;
  readonly after: unknown;
}

/** A change in the history. */
export interface StoredChange {
  readonly version: number;
  /** The store's time, in microseconds. */
  readonly at: number;
  readonly by?: string;
  readonly reason?: string;
  readonly rollbackTo?: number;
  readonly changes: readonly ChangedOverride[];
}

/** The most changes that the history keeps. */
export const MAX_CHANGES = 1000;

/** Keeps overrides and their history. A failed read or write rejects with `RateLimitStoreError`. */
export interface OverrideStore {
  /** Is told of records whenever some were read or changed here, in the order of the changes. */
  subscribe(onUpdate: (update: OverrideUpdate) => void): void;
  /** Reads the store now and after each change by others, until `close`. Resolves after the first read, even if it failed. */
  watch(): Promise<void>;
  /** Resolves when all changes that were made before the call have been told. */
  read(): Promise<void>;
  /** Resolves to whether the change was made, when it has been told. */
  write(change: OverrideChange): Promise<boolean>;
  /** The last changes, at most so many: the oldest first. */
  changes(most: number): Promise<StoredChange[]>;
  close(): void;
}
