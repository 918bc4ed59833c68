import type { ExecutionContext } from '@nestjs/common';
import { assertActual } from '../../engine/limits/arguments.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { Rule } from '../../app/rules/rule.js';
import { settle } from '../../app/limiter/settlement.js';
import type { CheckResult, Decision } from '../../engine/limits/decision.js';
import type { LimitedRequest } from './limited-request.js';
import { searchRequest } from './requests.js';

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
    if (!applicable.some(meant))
      throw new RateLimitArgumentError(messages.nothingToSettle(name), { code: 'SLUICE_UNSUPPORTED_CALL' });
    const open = this.#request.charges.filter(({ rule, settled }) => !settled && meant(rule));
    await Promise.all(
      open.map((charge) => {
        const settling = settle(charge.store, { ...charge }, actual);
        charge.settled = true;
        // At most this number of units is refunded if the request does not count in the end.
        charge.units = Math.min(actual, 2 * charge.limit.whole.quota);
        return settling;
      }),
    );
  }
}
