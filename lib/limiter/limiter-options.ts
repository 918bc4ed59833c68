import type { Duration } from '../algorithms/options.js';
import type { ConsumeOptions } from '../limits/consume-options.js';

/** The units that a call waits for, and the end of its wait. */
export interface AcquireOptions extends ConsumeOptions {
  /**
   * The longest wait: milliseconds or a duration such as `'5s'`, at most 1 year.
   * @default no end
   */
  timeout?: Duration;
  /** Ends the wait when it aborts. */
  signal?: AbortSignal;
}

/** The units that a call reserves. */
export interface ReserveOptions extends ConsumeOptions {
  /**
   * The longest wait: milliseconds or a duration such as `'5s'`, at most 1 year. Units that come later are refused.
   * @default '1y'
   */
  maxWait?: Duration;
}

/** What a credit is of. */
export interface CreditOptions {
  /**
   * Of all credits of a key with one id only the first counts: a payment's, so that its webhook may be sent again. It is known for 35
   * days. A string that is not empty; `undefined` is refused, so that a payment whose id was misread does not count each time.
   * @default each counts, where the options have no `id`
   */
  id?: string;
}

/** What those have besides the options of every call that asks for units. */
export const ACQUIRE_OPTIONS = ['timeout', 'signal'] as const satisfies readonly (keyof AcquireOptions)[];
export const RESERVE_OPTIONS = ['maxWait'] as const satisfies readonly (keyof ReserveOptions)[];
