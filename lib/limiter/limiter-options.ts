import type { Duration } from '../algorithms/options.js';

/** The units that a call waits for, and the end of its wait. */
export interface AcquireOptions {
  /**
   * Units: a whole number >= 1.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * The longest wait: milliseconds or a duration such as `'5s'`, at most 1 year.
   * @default no end
   */
  timeout?: Duration;
  /** Ends the wait when it aborts. */
  signal?: AbortSignal;
}

/** The units that a call reserves. */
export interface ReserveOptions {
  /**
   * Units: a whole number >= 1.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * The longest wait: milliseconds or a duration such as `'5s'`, at most 1 year. Units that come later are refused.
   * @default '1y'
   */
  maxWait?: Duration;
}
