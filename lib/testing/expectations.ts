import { AssertionError } from 'node:assert';
import { messages } from '../errors/messages/general.js';
import type { CheckResult, Decision } from '../limits/decision.js';

/** What an allowance is expected to say. */
export interface ExpectedAllowance {
  /**
   * The units that are left; of several limits, of the tightest.
   * @default any number
   */
  remaining?: number;
}

/** What a refusal is expected to say. */
export interface ExpectedRefusal {
  /**
   * The name of a limit that refuses.
   * @default of several limits, the one with the longest wait
   */
  limit?: string;
  /**
   * Its wait in milliseconds.
   * @default any wait
   */
  retryAfterMs?: number;
}

/**
 * Asserts that a decision, or the result of several limits, allows. Throws an `AssertionError` of `node:assert` if not, which
 * every test runner shows.
 *
 * @param decision what was decided
 * @param expected what else to look at
 */
export function expectAllowed(decision: Decision | CheckResult, { remaining }: ExpectedAllowance = {}): void {
  const told = tightest(decision);
  if (!decision.allowed) fail(messages.expectedAllowance(told), decision, expectAllowed);
  if (remaining !== undefined && told.remaining !== remaining) {
    fail(messages.expectedRemaining(told, remaining), decision, expectAllowed);
  }
}

/**
 * Asserts that a decision, or the result of several limits, refuses; that of a refused request is the `result` of its
 * `RateLimitExceededException`. Throws an `AssertionError` of `node:assert` if not.
 *
 * @param decision what was decided
 * @param expected what else to look at
 */
export function expectRefused(decision: Decision | CheckResult, { limit, retryAfterMs }: ExpectedRefusal = {}): void {
  if (decision.allowed) fail(messages.expectedRefusal(tightest(decision)), decision, expectRefused);
  const told = limit === undefined ? tightest(decision) : named(decision, limit);
  if (told?.allowed !== false) {
    const refusing = all(decision).filter(({ allowed }) => !allowed);
    fail(
      messages.expectedRefusalBy(
        limit!,
        refusing.map((each) => each.limit),
      ),
      decision,
      expectRefused,
    );
  }
  if (retryAfterMs !== undefined && told.retryAfterMs !== retryAfterMs) {
    fail(messages.expectedWait(told, retryAfterMs), decision, expectRefused);
  }
}

function all(decision: Decision | CheckResult): readonly Decision[] {
  return 'decisions' in decision ? decision.decisions : [decision];
}

function tightest(decision: Decision | CheckResult): Decision {
  return 'tightest' in decision ? decision.tightest : decision;
}

function named(decision: Decision | CheckResult, name: string): Decision | undefined {
  return all(decision).find(({ limit }) => limit === name);
}

/** `from`: what the stack leaves out, so that it begins in the test. */
function fail(message: string, actual: unknown, from: Function): never {
  throw new AssertionError({ message, actual, stackStartFn: from });
}
