import { AssertionError } from 'node:assert';
import type { Type } from '@nestjs/common';
import type { LeasedDecision } from '../app/limiter/lease.js';
import type { Limiter } from '../app/limiter/limiter.js';
import { HandlerClasses } from '../app/rules/handler-classes.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';
import { RoutePaths } from '../app/rules/route-paths.js';
import { RouteRulesRegistry } from '../app/rules/route-rules-registry.js';
import { messages } from '../engine/errors/messages/general.js';
import { routeAndMethod } from '../engine/errors/wording.js';
import type { OfTenant, WithinOptions } from '../engine/limits/consume-options.js';
import type { CheckResult, Decision } from '../engine/limits/decision.js';
import { providerOf } from '../nest/copies.js';
import { listRoutes } from '../nest/routes/route-list.js';

/**
 * Takes all units that are left for a key, so that the next call or request is rejected. For a route with a defined limit, the key is the
 * identity, such as `ip:127.0.0.1` or `user:42`. If tenants share units, takes all that one tenant can take. Rejects with
 * `RateLimitArgumentError` if the key is invalid.
 *
 * @param limiter the limit
 * @param key the key of the counter
 * @param options the tenant, if tenants share units; the keys of the limits above this one, if there are any: then it takes the units that
 * the level with the fewest left allows
 * @returns the decision that took the rest, with the `lease` of a `concurrency` limit; or a rejection if nothing was left
 */
export async function exhaust(
  limiter: Limiter,
  key: string,
  options: OfTenant & WithinOptions = {},
): Promise<LeasedDecision> {
  const decision = await limiter.peek(key, { ...options, cost: 1 });
  // The rest may only be available within its own rate.
  for (let cost = decision.remaining; cost > 0; cost = Math.floor(cost / 2)) {
    const taken = await limiter.consume(key, { ...options, cost });
    if (taken.allowed || options.within === undefined) return taken;
  }
  return decision;
}

/** The expected properties of an allowed decision. */
export interface ExpectedAllowance {
  /**
   * The units left; with several limits, those of the tightest.
   * @default any number
   */
  remaining?: number;
}

/** The expected properties of a rejection. */
export interface ExpectedRefusal {
  /**
   * The name of a limit that rejects.
   * @default with several limits, the one with the longest wait
   */
  limit?: string;
  /**
   * The wait that it reports, in milliseconds.
   * @default any wait
   */
  retryAfterMs?: number;
}

/**
 * Asserts that a decision, or the result of several limits, allows. Otherwise throws an `AssertionError` of `node:assert`, which every test
 * runner displays.
 *
 * @param decision the decision or result
 * @param expected further properties to check
 */
export function expectAllowed(decision: Decision | CheckResult, { remaining }: ExpectedAllowance = {}): void {
  const found = tightest(decision);
  if (!decision.allowed) fail(messages.expectedAllowance(found), decision, expectAllowed);
  if (remaining !== undefined && found.remaining !== remaining) {
    fail(messages.expectedRemaining(found, remaining), decision, expectAllowed);
  }
}

/**
 * Asserts that a decision, or the result of several limits, rejects. The result of a rejected request is the `result` of its
 * `RateLimitExceededException`. Otherwise throws an `AssertionError` of `node:assert`.
 *
 * @param decision the decision or result
 * @param expected further properties to check
 */
export function expectRefused(decision: Decision | CheckResult, { limit, retryAfterMs }: ExpectedRefusal = {}): void {
  if (decision.allowed) fail(messages.expectedRefusal(tightest(decision)), decision, expectRefused);
  const found = limit === undefined ? tightest(decision) : all(decision).find((each) => each.limit === limit);
  if (found?.allowed !== false) {
    const refusing = all(decision).flatMap((each) => (each.allowed ? [] : each.limit));
    fail(messages.expectedRefusalBy(limit!, refusing), decision, expectRefused);
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

/** `from`: the function to leave out of the stack trace, so that the trace begins in the test. */
function fail(message: string, actual: unknown, from: Function): never {
  throw new AssertionError({ message, actual, stackStartFn: from });
}

/** The part of an app that is used. */
export interface TestedApp {
  /** Returns a provider of any module. */
  get<T>(token: Type<T>, options: { readonly strict: false }): T;
}

/**
 * Asserts that each route has a limit, or an exception with a reason: `@SkipRateLimit({ because: '…' })`. Throws an `AssertionError` of
 * `node:assert` that lists the others. Routes are those over HTTP, of GraphQL, gateways, microservices and MCP. Limits whose mode is
 * `'off'` don't count, those in shadow mode do. Throws `RateLimitConfigError` if the app doesn't import `RateLimitModule`.
 *
 * @param app the app, after `init()`
 * @example
 * ```ts
 * expectAllRoutesLimited(app);
 * ```
 */
export function expectAllRoutesLimited(app: TestedApp): void {
  const find = <T>(token: Type<T>): T => providerOf(app, token, 'expectAllRoutesLimited');
  const routes = listRoutes({
    registry: find(LimitRegistry),
    rules: find(RouteRulesRegistry),
    classes: find(HandlerClasses),
    paths: find(RoutePaths),
  });
  const unlimited = routes.filter((route) => route.unlimited);
  if (unlimited.length === 0) return;
  const lines = unlimited.map(routeAndMethod);
  throw new AssertionError({
    message: messages.unlimitedRoutes(lines, routes.length),
    actual: lines,
    expected: [],
    operator: 'expectAllRoutesLimited',
    stackStartFn: expectAllRoutesLimited,
  });
}
