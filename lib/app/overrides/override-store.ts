import type { OverrideAddress } from './override-address.js';
import type { StoredRecord } from './override-record.js';
import type { InheritMode } from './override.js';

/** Records that changed, by the fields of their addresses. */
export interface OverrideUpdate {
  /** The store's time, in milliseconds. */
  readonly now: number;
  /** True if these are all existing records. */
  readonly complete: boolean;
  /** The records by their fields, the latest last; `undefined` for deleted ones. */
  readonly records: Iterable<readonly [field: string, record: StoredRecord | undefined]>;
}

/** A change of one override. */
export interface OverrideItem extends OverrideAddress {
  /** JSON; `'null'` to clear it. */
  readonly value: string;
  readonly inherit: InheritMode;
  /** The time at which it expires: `+` and milliseconds from now, milliseconds since the epoch, or `null`. */
  readonly ends: string;
  /** The limit's quota under the override. */
  readonly quota: number;
  /** The limit's quota before it; ignored if a current override already contains it. */
  readonly previousQuota: number;
}

/** The other members of a change that isn't a change of a rate: only rates have quotas. */
export const WITHOUT_QUOTA = { inherit: 'keep', quota: 0, previousQuota: 0 } as const;

/** A change that is made completely or not at all. */
export interface OverrideChange {
  /** `'try'` changes only what isn't overridden yet, `'clear'` only what is overridden; `'restore'` leaves generations unchanged. */
  readonly operation: 'set' | 'try' | 'clear' | 'restore';
  readonly items: readonly OverrideItem[];
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  /** If set, nothing changes unless this is the version of the last change. */
  readonly lastVersion?: number | undefined;
  /** The version to return to. */
  readonly rollbackTo?: number | undefined;
}

/** The state of one override before and after a change: a record, or `null`. */
export interface ChangedOverride extends OverrideAddress {
  readonly before: unknown;
  readonly after: unknown;
}

/** A change in the history. */
export interface StoredChange {
  readonly version: number;
  /** The store's time, in microseconds. */
  readonly at: number;
  /** The time of the change before it, 0 for the first one; `undefined` if an earlier release made the change. */
  readonly previousAt?: number;
  readonly by?: string;
  readonly reason?: string;
  readonly rollbackTo?: number;
  readonly changes: readonly ChangedOverride[];
}

/** The maximum number of changes in the history. */
export const MAX_CHANGES = 1000;

/** Stores overrides and their history. A failed read or write rejects with `RateLimitStoreError`. */
export interface OverrideStore {
  /** Subscribes to records that were read or changed here, in the order of the changes. */
  subscribe(onUpdate: (update: OverrideUpdate) => void): void;
  /** Reads the store now and after each change by others, until `close`. Resolves after the first read, even if it failed. */
  watch(): Promise<void>;
  /** Resolves when all changes before the call have been reported. */
  read(): Promise<void>;
  /** Resolves to the version of the change once it has been reported; to `undefined` if it wasn't made. */
  write(change: OverrideChange): Promise<number | undefined>;
  /** The last changes, at most `most`, starting with the oldest. */
  changes(most: number): Promise<StoredChange[]>;
  close(): void;
}
