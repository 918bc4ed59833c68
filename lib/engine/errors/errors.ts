import type { RateLimitErrorCode, RateLimitErrorOptions } from './codes.js';

/** An option is invalid. Thrown at start-up. The message contains the place, the option, the expected and the received value. */
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

/** A call's argument is invalid (a cost or a key). Thrown before anything is sent to the store. */
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

/** The store did not respond: it is down or slow, or it rejected the call. `cause` is the first error. */
export class RateLimitStoreError extends Error {
  /** `'RateLimitStoreError'`. */
  override readonly name = 'RateLimitStoreError';
  /** The error's code: `'SLUICE_STORE_FAILED'` by default. */
  readonly code: RateLimitErrorCode;
  /** @internal The server executed the call, but replicas did not confirm it in time. No node has failed. */
  isUnconfirmed?: boolean;
  /** @internal The node of a Cluster that failed. */
  node?: string | undefined;
  /** @internal The slot of a Cluster that is being moved. Its node has not failed. */
  slot?: number | undefined;
  /** @internal Another server has the data, and its address isn't known. No server has failed. */
  isElsewhere?: boolean;

  /** Thrown by the library; a store of your own may throw one as well. */
  constructor(message?: string, options?: RateLimitErrorOptions) {
    super(message, options);
    this.code = options?.code ?? 'SLUICE_STORE_FAILED';
  }
}
