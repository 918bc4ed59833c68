import type { RateState } from './override.js';

/** Everything that a book holds at one moment. */
export interface RatePage {
  /** The book's time in milliseconds. */
  readonly now: number;
  /** Each limit's record, as JSON. */
  readonly records: ReadonlyMap<string, string>;
}

/** A change of one limit's rate. */
export interface RateChange {
  /** `'try'` changes it only where no patch is in force, `'clear'` only where one is. */
  readonly operation: 'set' | 'try' | 'clear';
  readonly name: string;
  /** JSON; `'null'` to clear. */
  readonly patch: string;
  readonly state: RateState;
  /** In milliseconds; 0 is for ever. */
  readonly lastsMs: number;
  /** The limit's quota under the patch. */
  readonly quota: number;
  /** The limit's quota as configured. */
  readonly configuredQuota: number;
}

/** What came of a change. */
export interface RateAnswer {
  /** Whether it was made. */
  readonly done: boolean;
  /** The book after it. */
  readonly page: RatePage;
}

/** Where changed rates are kept. What cannot be read or written rejects with `RateLimitStoreError`. */
export interface RateBook {
  /** Reads the book now and whenever it changes, until it is closed. Resolves when it was first read, or could not be. */
  watch(changed: (page: RatePage) => void): Promise<void>;
  read(): Promise<RatePage>;
  write(change: RateChange): Promise<RateAnswer>;
  close(): void;
}
