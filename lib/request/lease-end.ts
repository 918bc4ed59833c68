import type { LeaseEnd } from '../algorithms/algorithm.js';
import type { Outcome } from '../config/common-limit-options.js';

/** Request Timeout, Service Unavailable and Gateway Timeout. */
const OVERLOADED: readonly unknown[] = [408, 503, 504];

/** The names of errors that a time limit ends work with: that of `AbortSignal.timeout`, and that of RxJS and others. */
const TIMEOUTS = ['TimeoutError'];

/**
 * What the end of a request says of how busy the app is. A refusal and a bug say nothing: they are there sooner than an answer, as often
 * as not.
 */
export function leaseEndOf({ aborted, failed, statusCode, error }: Outcome): LeaseEnd {
  if (aborted) return 'aborted';
  if (!failed) return 'completed';
  return OVERLOADED.includes(statusCode ?? statusOf(error)) || isTimeout(error) ? 'dropped' : 'ignored';
}

function statusOf(error: unknown): unknown {
  return told(() => (error as { getStatus?: () => unknown } | undefined)?.getStatus?.());
}

function isTimeout(error: unknown): boolean {
  return told(() => error instanceof Error && TIMEOUTS.includes(error.name)) === true;
}

/** What was thrown may be anything, and what it cannot tell must not keep the lease from its end. */
function told<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
