import type { Duration } from '../../engine/options/values.js';
import type { CallOptions } from '../../engine/limits/consume-options.js';

/** The units that a call waits for, and the end of the wait. */
export interface AcquireOptions extends CallOptions {
  /**
   * The maximum wait: milliseconds or a duration such as `'5s'`, at most 1 year.
   * @default no timeout
   */
  timeout?: Duration | undefined;
  /** Ends the wait when the signal aborts. */
  signal?: AbortSignal | undefined;
}

/** The units that a call reserves. */
export interface ReserveOptions extends CallOptions {
  /**
   * The maximum wait: milliseconds or a duration such as `'5s'`, at most 1 year. If the units would come later, the reservation is
   * rejected.
   * @default '1y'
   */
  maxWait?: Duration | undefined;
}

/** The options of `acquire` in addition to those of every call that takes units. */
export const ACQUIRE_OPTIONS = ['timeout', 'signal'] as const satisfies readonly (keyof AcquireOptions)[];
export const RESERVE_OPTIONS = ['maxWait'] as const satisfies readonly (keyof ReserveOptions)[];
