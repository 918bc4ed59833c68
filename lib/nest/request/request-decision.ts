import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import type { Rule } from '../../app/rules/rule.js';
import { argumentError, RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { assertActual } from '../../engine/limits/arguments.js';
import type { CheckResult, Decision } from '../../engine/limits/decision.js';
import { asObject } from '../../engine/util/objects.js';
import { settleCharge } from './charges.js';
import type { LimitedRequest } from './limited-request.js';
import { decidedOf, findEarly, requestOfCall, requestOfRaw, searchDecided, searchRequest } from './requests.js';

/** The decisions of all limits of a request, for its handler. */
export class RequestDecision implements CheckResult {
  readonly allowed: boolean;
  readonly decisions: Decision[];
  readonly tightest: Decision;
  readonly delayMs: number;

  /** Private at run time as well, because handlers return decisions as they are. */
  readonly #request: LimitedRequest;

  private constructor(result: CheckResult, request: LimitedRequest) {
    this.#request = request;
    this.allowed = result.allowed;
    this.decisions = result.decisions;
    this.tightest = result.tightest;
    this.delayMs = result.delayMs;
  }

  /** @internal */
  static of(context: ExecutionContext): RequestDecision | undefined {
    return RequestDecision.ofRequest(searchRequest(context));
  }

  /** @internal */
  static ofRequest(request: LimitedRequest | undefined): RequestDecision | undefined {
    return request?.result === undefined ? undefined : new RequestDecision(request.result, request);
  }

  /**
   * Settles the actual cost of the request, once it is known. Surplus units are refunded; missing ones are charged, up to one quota beyond
   * the limit. Each limit is settled once. Limits that did not charge the request are left out: they were skipped, or would have rejected
   * it if they weren't in shadow mode. Rejects with `RateLimitArgumentError` or `RateLimitStoreError`.
   *
   * @param actual a whole number >= 0
   * @param name the limit; by default all limits of the request that have a `cost`
   */
  async settle(actual: number, name?: string): Promise<void> {
    assertActual(actual);
    const { applicable, entries } = this.#request;
    const isNamed = (rule: Rule) =>
      rule.limit.algorithm.leases === undefined && (name === undefined ? rule.hasCost : rule.name === name);
    // Levels without their own cost were charged the cost of the level within them, unless that level exempted the request.
    const passesOn = (rule: Rule) => rule.limit.off || entries.some((entry) => entry.rule === rule);
    const costly = applicable.filter((rule) => isNamed(rule) && passesOn(rule));
    const levels = new Set(costly.flatMap((rule) => rule.ancestorsOfSameCost));
    const meant = (rule: Rule) => isNamed(rule) || (levels.has(rule) && rule.limit.algorithm.leases === undefined);
    if (!applicable.some(meant)) throw argumentError('SLUICE_UNSUPPORTED_CALL', messages.nothingToSettle(name));
    const open = this.#request.charges.filter(({ rule, settled }) => !settled && meant(rule));
    await Promise.all(open.map((charge) => settleCharge(charge, actual)));
  }
}

/** The maximum number of arguments of a call. A GraphQL field has four. */
const MOST_ARGUMENTS = 4;

/**
 * Returns the decisions of limits on a request so far, including rejections: for middlewares, guards, interceptors, pipes and exception
 * filters. `undefined` if no limit was checked. Throws `RateLimitArgumentError` if `call` isn't an object.
 *
 * @param call the context or host of the request, of any transport; or over HTTP the request itself
 * @example
 * ```ts
 * const remaining = rateLimitOf(context)?.tightest.remaining;
 * ```
 */
export function rateLimitOf(call: ArgumentsHost | object): RequestDecision | undefined {
  if (asObject(call) === undefined) throw new RateLimitArgumentError(messages.wrongCallOf(call));
  return RequestDecision.ofRequest(isHost(call) ? decidedIn(call) : decidedFor(call));
}

function decidedIn(host: ArgumentsHost): ReturnType<typeof decidedOf> {
  const args = argsOf(host);
  const { getHandler } = host as Partial<ExecutionContext>;
  const context = host as ExecutionContext;
  // The context of `GqlExecutionContext` contains the arguments of the field instead of those of the call.
  if (Array.isArray(host.getArgs()) && getHandler !== undefined && (context.getHandler() as unknown) !== null) {
    const found = searchRequest(context);
    if (found?.result !== undefined) return found;
  }
  return searchDecided(args) ?? decidedOf(findEarly(asObject(args[0])));
}

function decidedFor(request: object): ReturnType<typeof decidedOf> {
  return decidedOf(requestOfCall(request)) ?? decidedOf(requestOfRaw(request)) ?? decidedOf(findEarly(request));
}

function argsOf(host: ArgumentsHost): readonly unknown[] {
  const args: unknown = host.getArgs();
  if (Array.isArray(args)) return args;
  return Array.from({ length: MOST_ARGUMENTS }, (_, index): unknown => host.getArgByIndex(index));
}

function isHost(call: object): call is ArgumentsHost {
  const { getArgs, getArgByIndex, getType } = call as Partial<ArgumentsHost>;
  return [getArgs, getArgByIndex, getType].every((each) => typeof each === 'function');
}
