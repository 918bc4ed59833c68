import type { CompiledLimit } from './compiled-limit.js';

/** One limit's counter for one identity. */
export interface Counter {
  /** The limit. */
  readonly limit: CompiledLimit;
  /** Whom it counts, such as `ip:203.0.113.7`. */
  readonly identity: string;
}

/** What a check asks of one counter. */
export interface CheckEntry extends Counter {
  /** Units: a whole number >= 1. */
  readonly cost: number;
}
