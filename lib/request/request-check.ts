import { Inject, Injectable } from '@nestjs/common';
import { RATE_LIMIT_STORE } from '../config/tokens.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { withExpectedWait } from '../limiter/hold-times.js';
import type { Rule, RuleEntry } from '../rules/rule.js';
import { decided } from '../stores/decide.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { isPromise, mapAll } from '../util/awaitable.js';
import { Answers } from './answers.js';
import type { StoreCheck } from './charges.js';
import { clientClosedRequest } from './client-closed-request.js';
import type { LimitedRequest } from './limited-request.js';

/** Checks a request against rules, in one atomic call of the store. */
@Injectable()
export class RequestCheck {
  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly answers: Answers,
  ) {}

  /** Resolves to nothing if none of the rules applies. Rejects with what a missing key or a failing store is answered with. */
  async checkRules(request: LimitedRequest, rules: readonly Rule[]): Promise<StoreCheck | undefined> {
    const { context, parts, mayReplaceLimits } = request;
    if (rules.length === 0) return undefined;
    refuseIfClosed(request, rules);
    request.applicable.push(...rules);
    const collected = mapAll(rules, (rule) => rule.entry(context, parts));
    const entries = (isPromise(collected) ? await collected : collected).filter((entry) => entry !== undefined);
    // While functions were asked, the client may have left, and taken its address along.
    if (isPromise(collected)) refuseIfClosed(request, rules);
    if (entries.length === 0) return undefined;
    const refundable = mayReplaceLimits || entries.some(({ rule }) => rule.mayGiveBack);
    try {
      const decisions = await decided(this.store, { entries, refundable });
      return { entries, decisions: withExpectedWaits(entries, decisions), store: this.store, refundable };
    } catch (error) {
      throw error instanceof RateLimitStoreError ? this.answers.unavailable(request, error) : error;
    }
  }
}

/** Decisions that refuse say how long units of `concurrency` limits will be held. */
function withExpectedWaits(entries: readonly RuleEntry[], decisions: StoreDecision[]): StoreDecision[] {
  if (decisions.every(({ allowed }) => allowed)) return decisions;
  const now = performance.now();
  return decisions.map((decision, index) => withExpectedWait(decision, entries[index]!, now));
}

/** Refuses a request that has no client any more. */
function refuseIfClosed(request: LimitedRequest, rules: readonly Rule[]): void {
  if (request.isClosed && !rules.every(isShadow)) throw clientClosedRequest();
}

/** A shadow refuses nothing, whatever the reason. */
function isShadow({ limit }: Rule): boolean {
  return limit.shadow;
}
