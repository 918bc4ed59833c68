import type { Outcome } from '../../app/config/common-limit-options.js';
import type { Rule } from '../../app/rules/rule.js';
import type { LeaseEnd } from '../../engine/algorithms/algorithm.js';
import { argumentError } from '../../engine/errors/errors.js';
import type { Attempts } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { assertActual } from '../../engine/limits/arguments.js';
import { type Awaitable, isPromise } from '../../engine/util/awaitable.js';

/**
 * Returns true if a request counts, or the number of units that it counts. If a function of the app throws, the request counts, so that it
 * does not become free.
 */
export function countedUnits(rule: Rule, outcome: Outcome, attempts: Attempts): Awaitable<boolean | number> {
  const failed = (error: unknown) => {
    attempts.report(messages.countFailed(rule.name), error);
    return true;
  };
  try {
    const counted = rule.counts(outcome);
    return isPromise(counted) ? Promise.resolve(counted).then(checked).catch(failed) : checked(counted);
  } catch (error) {
    return failed(error);
  }
}

/** Checks the result of a `count` function. Throws for a value that its type forbids, such as `undefined` after a forgotten `return`. */
function checked(counted: boolean | number): boolean | number {
  if (typeof counted === 'boolean') return counted;
  if (typeof counted !== 'number') throw argumentError('SLUICE_INVALID_RESULT', messages.wrongCount(counted));
  assertActual(counted);
  return counted;
}

/** Request Timeout, Service Unavailable and Gateway Timeout. */
const OVERLOADED: readonly unknown[] = [408, 503, 504];

/** The name of errors after a timeout, from `AbortSignal.timeout`, RxJS and others. */
const TIMEOUT = 'TimeoutError';

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
  return attempt(() => error instanceof Error && error.name === TIMEOUT) === true;
}

/** Reads a property of a thrown value, which may be anything. If that throws, the lease must still be released. */
function attempt<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
