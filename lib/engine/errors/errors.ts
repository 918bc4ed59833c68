import type { RateLimitErrorCode, RateLimitErrorOptions } from './codes.js';

/** An option is wrong. Thrown at start-up. The message names the place, the option, the expected and the received value. */
export class RateLimitConfigError extends Error {
  /** `'RateLimitConfigError'`. */
  override readonly name = 'RateLimitConfigError';
  /** The error's code: `'SLUICE_INVALID_OPTION'` by default. */
  readonly code: RateLimitErrorCode;

  /** Thrown by the library; your own code may throw one as well. */
  constructor(message?: string, options?: RateLimitErrorOptions) {
    super(message, options);
    this.code = options?.code ?? 'SLUICE_INVALID_OPTION';
  }
}

/** A call's argument is wrong (a cost or a key). Thrown before anything is sent to the store. */
export class RateLimitArgumentError extends TypeError {
  /** `'RateLimitArgumentError'`. */
  override readonly name = 'RateLimitArgumentError';
  /** The error's code: `'SLUICE_INVALID_ARGUMENT'` by default. */
  readonly code: RateLimitErrorCode;

  /** Thrown by the library; your own code may throw one as well. */
  constructor(message?: string, options?: RateLimitErrorOptions) {
    super(message, options);
    this.code = options?.code ?? 'SLUICE_INVALID_ARGUMENT';
  }
}

/** The store gave no answer: it is down, too slow, or it refused the call. `cause` is the first error. */
export class RateLimitStoreError extends Error {
  /** `'RateLimitStoreError'`. */
  override readonly name = 'RateLimitStoreError';
  /** The error's code: `'SLUICE_STORE_FAILED'` by default. */
  readonly code: RateLimitErrorCode;
  /** @internal The server did what it was asked, and replicas have not confirmed it in time: no node has failed. */
  isUnconfirmed?: boolean;
  /** @internal The node of a Cluster that failed. */
  node?: string | undefined;
  /** @internal The slot of a Cluster that is being moved: its node has not failed. */
  slot?: number | undefined;
  /** @internal It is kept on another server, which nobody named: no server has failed. */
  isElsewhere?: boolean;

  /** Thrown by the library; a store of your own may throw one as well. */
  constructor(message?: string, options?: RateLimitErrorOptions) {
    super(message, options);
    this.code = options?.code ?? 'SLUICE_STORE_FAILED';
  }
}
