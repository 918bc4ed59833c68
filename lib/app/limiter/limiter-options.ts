import type { Duration } from '../../engine/options/values.js';
import type { CallOptions } from '../../engine/limits/consume-options.js';

/** The units that a call waits for, and when to stop waiting. */
export interface AcquireOptions extends CallOptions {
  /**
   * The longest wait: milliseconds or a duration such as `'5s'`, at most 1 year.
   * @default no timeout
   */
  timeout?: Duration | undefined;
  /** Ends the wait when it aborts. */
  signal?: AbortSignal | undefined;
}

/** The units that a call reserves. */
export interface ReserveOptions extends CallOptions {
  /**
   * The longest wait: milliseconds or a duration such as `'5s'`, at most 1 year. If the units would come later, they are refused.
   * @default '1y'
   */
  maxWait?: Duration | undefined;
}

/** The options of `acquire` beyond those of every call that takes units. */
export const ACQUIRE_OPTIONS = ['timeout', 'signal'] as const satisfies readonly (keyof AcquireOptions)[];
export const RESERVE_OPTIONS = ['maxWait'] as const satisfies readonly (keyof ReserveOptions)[];
