import type { LeaseEnd } from '../../engine/algorithms/algorithm.js';
import type { Outcome } from '../../app/config/common-limit-options.js';

/** Request Timeout, Service Unavailable and Gateway Timeout. */
const OVERLOADED: readonly unknown[] = [408, 503, 504];

/** The names of errors after a timeout: that of `AbortSignal.timeout`, and those of RxJS and others. */
const TIMEOUTS = ['TimeoutError'];

/** The end of a request, as a signal of load. Rejections and bugs are ignored: they usually come earlier than a proper response. */
export function leaseEndOf({ aborted, failed, statusCode, error }: Outcome): LeaseEnd {
  if (aborted) return 'aborted';
  if (!failed) return 'completed';
  return OVERLOADED.includes(statusCode ?? statusOf(error)) || isTimeout(error) ? 'dropped' : 'ignored';
}

function statusOf(error: unknown): unknown {
  return attempt(() => (error as { getStatus?: () => unknown } | undefined)?.getStatus?.());
}

function isTimeout(error: unknown): boolean {
  return attempt(() => error instanceof Error && TIMEOUTS.includes(error.name)) === true;
}

/** Reads a property of a thrown value, which may be anything. If that throws, the lease must still be released. */
function attempt<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
