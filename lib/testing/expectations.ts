import { AssertionError } from 'node:assert';
import { messages } from '../engine/errors/messages/general.js';
import type { CheckResult, Decision } from '../engine/limits/decision.js';
import type { Limiter } from '../app/limiter/limiter.js';
import type { LeasedDecision } from '../app/limiter/lease.js';
import type { OfTenant, WithinOptions } from '../engine/limits/consume-options.js';

/**
 * Takes all units that are left for a key, so that the next call or request is refused. For a route with a defined limit the key
 * is the identity, such as `ip:127.0.0.1` or `user:42`. If tenants share units, takes all that one of them can take. Rejects with
 * `RateLimitArgumentError` if the key is wrong.
 *
 * @param limiter the limit
 * @param key the key of the counter
 * @param options the tenant, if tenants share units; the keys of the limits that this one is within, if any: then takes what the
 * level with the least left allows
 * @returns the decision that took the rest, with the `lease` of a `concurrency` limit; or a refusal if nothing was left
 */
export async function exhaust(
  limiter: Limiter,
  key: string,
  options: OfTenant & WithinOptions = {},
): Promise<LeasedDecision> {
  const decision = await limiter.peek(key, { ...options, cost: 1 });
  // The rest may be available within its own rate only.
  for (let cost = decision.remaining; cost > 0; cost = Math.floor(cost / 2)) {
    const taken = await limiter.consume(key, { ...options, cost });
    if (taken.allowed || options.within === undefined) return taken;
  }
  return decision;
}

/** What an allowed decision is expected to have. */
export interface ExpectedAllowance {
  /**
   * The units that are left; of several limits, those of the tightest.
   * @default any number
   */
  remaining?: number;
}

/** What a refusal is expected to have. */
export interface ExpectedRefusal {
  /**
   * The name of a limit that refuses.
   * @default of several limits, the one with the longest wait
   */
  limit?: string;
  /**
   * The wait that it reports, in milliseconds.
   * @default any wait
   */
  retryAfterMs?: number;
}

/**
 * Asserts that a decision, or the result of several limits, allows. Throws an `AssertionError` of `node:assert` if not, which
 * every test runner shows.
 *
 * @param decision the decision or result
 * @param expected what else it has to have
 */
export function expectAllowed(decision: Decision | CheckResult, { remaining }: ExpectedAllowance = {}): void {
  const found = tightest(decision);
  if (!decision.allowed) fail(messages.expectedAllowance(found), decision, expectAllowed);
  if (remaining !== undefined && found.remaining !== remaining) {
    fail(messages.expectedRemaining(found, remaining), decision, expectAllowed);
  }
}

/**
 * Asserts that a decision, or the result of several limits, refuses. The result of a refused request is the `result` of its
 * `RateLimitExceededException`. Throws an `AssertionError` of `node:assert` if not.
 *
 * @param decision the decision or result
 * @param expected what else it has to have
 */
export function expectRefused(decision: Decision | CheckResult, { limit, retryAfterMs }: ExpectedRefusal = {}): void {
  if (decision.allowed) fail(messages.expectedRefusal(tightest(decision)), decision, expectRefused);
  const found = limit === undefined ? tightest(decision) : named(decision, limit);
  if (found?.allowed !== false) {
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
  if (retryAfterMs !== undefined && found.retryAfterMs !== retryAfterMs) {
    fail(messages.expectedWait(found, retryAfterMs), decision, expectRefused);
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

/** `from`: the function to leave out of the stack trace, so that it begins in the test. */
function fail(message: string, actual: unknown, from: Function): never {
  throw new AssertionError({ message, actual, stackStartFn: from });
}
