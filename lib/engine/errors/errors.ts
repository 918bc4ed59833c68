/**
 * The code of an error, for code that tells errors apart and to search for: each has a section on the page "Errors" of the documentation.
 * Codes stay the same when messages change. New releases add codes, so expect some that you don't know.
 */
export type RateLimitErrorCode =
  // Options of the module and of limits
  | 'SLUICE_INVALID_OPTION'
  | 'SLUICE_UNKNOWN_OPTION'
  | 'SLUICE_MISPLACED_OPTION'
  | 'SLUICE_MISSING_OPTION'
  | 'SLUICE_EXCLUDED_OPTIONS'
  | 'SLUICE_UNSUPPORTED_OPTION'
  | 'SLUICE_UNCHANGEABLE_OPTION'
  | 'SLUICE_INVALID_DURATION'
  | 'SLUICE_INVALID_POLICY'
  | 'SLUICE_INVALID_REDIS'
  // Limits
  | 'SLUICE_INVALID_LIMIT'
  | 'SLUICE_UNKNOWN_ALGORITHM'
  | 'SLUICE_UNKNOWN_LIMIT'
  | 'SLUICE_DUPLICATE_LIMIT'
  | 'SLUICE_UNSUPPORTED_LIMIT'
  | 'SLUICE_INVALID_WITHIN'
  | 'SLUICE_INEXACT_RATE'
  // The app that the limits are in
  | 'SLUICE_NO_MODULE'
  | 'SLUICE_DUPLICATE_MODULE'
  | 'SLUICE_LAZY_MODULE'
  | 'SLUICE_TWO_COPIES'
  | 'SLUICE_MISSING_PACKAGE'
  | 'SLUICE_UNCHECKED_LIMIT'
  | 'SLUICE_NOT_INJECTED'
  | 'SLUICE_INVALID_NAMESPACE'
  | 'SLUICE_UNKNOWN_ROUTE'
  | 'SLUICE_MOVED_METHOD'
  // Calls
  | 'SLUICE_INVALID_ARGUMENT'
  | 'SLUICE_INVALID_COST'
  | 'SLUICE_INVALID_KEY'
  | 'SLUICE_UNSUPPORTED_CALL'
  | 'SLUICE_TOO_MANY_LIMITS'
  // Functions and classes of the app
  | 'SLUICE_INVALID_RESULT'
  | 'SLUICE_RESOLVE_TIMEOUT'
  | 'SLUICE_NO_READER'
  // Decisions
  | 'SLUICE_LIMIT_EXCEEDED'
  | 'SLUICE_DENIED'
  | 'SLUICE_TIMEOUT'
  | 'SLUICE_COST_ABOVE_QUOTA'
  | 'SLUICE_TOO_MANY_WAITERS'
  | 'SLUICE_NOT_SENT'
  // The store
  | 'SLUICE_STORE_FAILED'
  | 'SLUICE_STORE_TIMEOUT'
  | 'SLUICE_CIRCUIT_OPEN'
  | 'SLUICE_REDIS_UNREACHABLE'
  | 'SLUICE_REDIS_AUTH'
  | 'SLUICE_REDIS_RIGHTS'
  | 'SLUICE_NOT_REPLICATED'
  | 'SLUICE_HOME_UNREACHABLE'
  | 'SLUICE_ROLLBACK_CONFLICT'
  | 'SLUICE_SHUTTING_DOWN';

/** The options of an error. */
export interface RateLimitErrorOptions extends ErrorOptions {
  /** The code; by default that of the error's class. */
  readonly code?: RateLimitErrorCode;
}

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

/** An error in an option with a more specific code. */
export function configError(code: RateLimitErrorCode, message: string): RateLimitConfigError {
  return new RateLimitConfigError(message, { code });
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

/** An error in an argument with a more specific code. */
export function argumentError(code: RateLimitErrorCode, message: string): RateLimitArgumentError {
  return new RateLimitArgumentError(message, { code });
}

/** The store did not respond: it is down or slow, or it rejected the call. `cause` is the first error. */
export class RateLimitStoreError extends Error {
  /** `'RateLimitStoreError'`. */
  override readonly name = 'RateLimitStoreError';
  /** The error's code: `'SLUICE_STORE_FAILED'` by default. */
  readonly code: RateLimitErrorCode;
  /** @internal The server executed the call, but replicas did not confirm it in time. No node has failed. */
  isUnconfirmed?: boolean;
  /** @internal A check of several calls took too long. No node has failed. */
  isOutOfTime?: boolean;
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
