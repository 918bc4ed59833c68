import { Inject, Injectable } from '@nestjs/common';
import { RATE_LIMIT_STORE } from '../config/tokens.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { withExpectedWait } from '../limiter/hold-times.js';
import type { Rule, RuleEntry } from '../rules/rule.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { type Awaitable, isPromise } from '../util/awaitable.js';
import { Answers } from './answers.js';
import { askStore } from './ask-store.js';
import type { StoreCheck } from './charges.js';
import { clientClosedRequest } from './client-closed-request.js';
import type { LimitedRequest } from './limited-request.js';
import { entriesOf } from './request-entries.js';

/** Checks a request against rules, in one atomic call of the store. */
@Injectable()
export class RequestCheck {
  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly answers: Answers,
  ) {}

  /**
   * Gives nothing if none of the rules applies. Throws, or rejects, with what a missing key or a failing store is answered with. The
   * check is there at once if no function and no server has to be waited for.
   */
  checkRules(request: LimitedRequest, rules: readonly Rule[]): Awaitable<StoreCheck | undefined> {
    const { context, parts, mayReplaceLimits } = request;
    if (rules.length === 0) return undefined;
    refuseIfClosed(request, rules);
    request.apply(rules);
    const entries = entriesOf(rules, context, parts);
    if (!isPromise(entries)) return this.checkEntries(request, entries, mayReplaceLimits);
    return entries.then((found) => {
      // While functions were asked, the client may have left, and taken its address along.
      refuseIfClosed(request, rules);
      return this.checkEntries(request, found, mayReplaceLimits);
    });
  }

  private checkEntries(
    request: LimitedRequest,
    entries: readonly RuleEntry[],
    mayReplaceLimits: boolean,
  ): Awaitable<StoreCheck | undefined> {
    if (entries.length === 0) return undefined;
    const refundable = mayReplaceLimits || mayGiveBack(entries);
    const checked = (decisions: StoreDecision[]): StoreCheck => ({
      entries,
      decisions: withExpectedWaits(entries, decisions),
      store: this.store,
      refundable,
    });
    try {
      const decisions = askStore(this.store, { entries, refundable });
      if (!isPromise(decisions)) return checked(decisions);
      return decisions.then(checked, (error: unknown) => {
        throw this.failure(request, error);
      });
    } catch (error) {
      throw this.failure(request, error);
    }
  }

  /** What a store that failed is answered with. */
  private failure(request: LimitedRequest, error: unknown): unknown {
    return error instanceof RateLimitStoreError ? this.answers.unavailable(request, error) : error;
  }
}

/** Whether units of some entry may have to be given back. */
function mayGiveBack(entries: readonly RuleEntry[]): boolean {
  for (const { rule } of entries) if (rule.mayGiveBack) return true;
  return false;
}

/** Decisions that refuse say how long units of `concurrency` limits will be held. */
function withExpectedWaits(entries: readonly RuleEntry[], decisions: StoreDecision[]): StoreDecision[] {
  if (decisions.every(isAllowed)) return decisions;
  const now = performance.now();
  return decisions.map((decision, index) => withExpectedWait(decision, entries[index]!, now));
}

function isAllowed({ allowed }: StoreDecision): boolean {
  return allowed;
}

/** Refuses a request that has no client any more. */
function refuseIfClosed(request: LimitedRequest, rules: readonly Rule[]): void {
  if (request.isClosed && !rules.every(isShadow)) throw clientClosedRequest();
}

/** A shadow refuses nothing, whatever the reason. */
function isShadow({ limit }: Rule): boolean {
  return limit.shadow;
}
