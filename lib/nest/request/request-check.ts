import { Inject, Injectable } from '@nestjs/common';
import type { Phase } from '../../app/config/common-limit-options.js';
import { RATE_LIMIT_LISTS, RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { withExpectedWait } from '../../app/limiter/lease.js';
import type { Lists } from '../../app/overrides/lists/lists.js';
import { rulesOfPhase } from '../../app/rules/route-rules.js';
import { requestEntries } from '../../app/rules/resolve/request-entries.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import type { Rule } from '../../app/rules/rule.js';
import { addressOf } from '../../app/transports/read-request.js';
import { andThen, type Awaitable, isPromise } from '../../engine/util/awaitable.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import {
  type AnswerTap,
  type CheckAnswer,
  type CheckOrigin,
  type StoreDecision,
  UNTIMED,
} from '../../storage/stores/store.js';
import { giveBack, type StoreCheck } from './charges.js';
import { clientClosedRequest } from './call-run.js';
import type { LimitedRequest } from './limited-request.js';
import { findEarly } from './requests.js';

/** Checks a request against rules, in one atomic call of the store. */
@Injectable()
export class RequestCheck {
  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Layer,
    @Inject(RATE_LIMIT_LISTS) private readonly lists: Lists,
  ) {}

  /** Checks a request against its rules of a phase. Returns and throws the same as `check`. */
  checkPhase(phase: Phase, request: LimitedRequest): Awaitable<PendingCheck | undefined> {
    return andThen(selectRules(phase, request), (rules) => this.check(request, rules));
  }

  /**
   * Checks a request against rules. Returns the check with the store's decisions, or `undefined` if no rule applies. Throws or rejects if a
   * request without a key is rejected.
   */
  check(request: LimitedRequest, rules: readonly Rule[]): Awaitable<PendingCheck | undefined> {
    if (rules.length === 0) return undefined;
    const { parts, mayReplaceLimits } = request;
    const entries = this.entries(request, rules);
    const address = this.lists.hasNetworks ? addressOf(parts) : undefined;
    if (!isPromise(entries)) return this.ask(request, entries, mayReplaceLimits, address);
    return entries.then((found) => {
      // While functions ran, the client may have left, so that its address is lost.
      refuseIfClosed(request, rules);
      return this.ask(request, found, mayReplaceLimits, address);
    });
  }

  /** The entries of rules for a request. Throws or rejects if a request without a key is rejected. */
  entries(request: LimitedRequest, rules: readonly Rule[]): Awaitable<readonly RuleEntry[]> {
    const { context, parts } = request;
    refuseIfClosed(request, rules);
    request.apply(rules);
    return requestEntries(rules, context, parts);
  }

  /** Checks entries of several calls together. All of their units can be refunded. */
  checkTogether(entries: readonly RuleEntry[], request: LimitedRequest): Awaitable<PendingCheck | undefined> {
    return this.ask(request, entries, true, this.lists.hasNetworks ? addressOf(request.parts) : undefined);
  }

  private ask(
    request: LimitedRequest,
    entries: readonly RuleEntry[],
    refundable: boolean,
    address: string | undefined,
  ): Awaitable<PendingCheck | undefined> {
    if (entries.length === 0) return undefined;
    const check = new PendingCheck(entries, this.store, refundable || mayGiveBack(entries), address, request);
    return check.answered ?? check;
  }
}

/** One check of a request. It also receives the decisions, so that a check needs only one object here. */
export class PendingCheck implements StoreCheck, CheckAnswer {
  decisions: readonly StoreDecision[] = [];
  /** Resolves to the check itself once the store has responded; `undefined` if it responded synchronously. */
  readonly answered: Promise<this> | undefined;
  private isAnswered = false;
  private failure: { readonly error: unknown } | undefined;
  private resolve: ((check: this) => void) | undefined;
  private tap: AnswerTap | undefined;

  /** Starts the check in the store. */
  constructor(
    readonly entries: readonly RuleEntry[],
    readonly store: Layer,
    readonly refundable: boolean,
    address: string | undefined,
    origin?: CheckOrigin,
  ) {
    store.decide({ entries, refundable, address, origin }, this);
    this.answered = this.isAnswered ? undefined : new Promise((resolve) => (this.resolve = resolve));
  }

  countBy(tap: AnswerTap): void {
    this.tap = tap;
  }

  decided(decisions: readonly StoreDecision[]): void {
    if (this.tap !== undefined) this.tap.decided(this.entries, decisions, UNTIMED);
    this.decisions = decisions;
    this.isAnswered = true;
    this.resolve?.(this);
  }

  failed(error: unknown): void {
    this.tap?.failed();
    this.failure = { error };
    this.isAnswered = true;
    this.resolve?.(this);
  }

  /** Throws the store's error if it failed. Sets the expected wait of rejections by `concurrency` limits. */
  conclude(): void {
    if (this.failure !== undefined) throw this.failure.error;
    if (this.decisions.every(isAllowed)) return;
    const now = performance.now();
    this.decisions = this.decisions.map((decision, index) => withExpectedWait(decision, this.entries[index]!, now));
  }
}

/** Finds the rules that a request is checked against in a phase. */
export function selectRules(phase: Phase, request: LimitedRequest): Awaitable<readonly Rule[]> {
  if (phase === 'middleware') return request.routeRules.middleware;
  return phase === 'guard' ? rulesInGuard(request) : rulesAfterGuards(request);
}

/** The rules of the guard, without those that a middleware has checked. */
function rulesInGuard(request: LimitedRequest): Awaitable<readonly Rule[]> {
  const { routeRules } = request;
  if (!routeRules.hasSources || routeRules.waitsForGuards(request.parts))
    return withoutEarlier(request, routeRules.guard);
  return andThen(routeRules.ask(request.context), (rules) => {
    request.rules = rules;
    return withoutEarlier(request, rulesOfPhase(rules, 'guard'));
  });
}

/** Leaves out rules that a middleware has checked, and takes over their decisions. */
function withoutEarlier(request: LimitedRequest, rules: readonly Rule[]): readonly Rule[] {
  const earlier = request.routeRules.middleware.length > 0 ? findEarly(request.parts.request) : undefined;
  return earlier === undefined ? rules : request.adopt(earlier, rules);
}

/** The rules after the guards, and all rules of functions that could not be called before. */
function rulesAfterGuards(request: LimitedRequest): Awaitable<readonly Rule[]> {
  const { routeRules, rules: known } = request;
  if (!routeRules.hasSources) return routeRules.authenticated;
  return andThen(known ?? routeRules.ask(request.context), async (rules) => {
    request.rules = rules;
    // Functions may have returned limits that replace already checked ones of the same name.
    await giveBack(request.keepOnly(rules));
    if (known !== undefined) return rulesOfPhase(rules, 'authenticated');
    // Limits that were checked before are not checked again, even if their child limits weren't checked.
    return rules.filter((rule) => !routeRules.guard.includes(rule));
  });
}

/** Returns true if units of any entry may have to be refunded. */
function mayGiveBack(entries: readonly RuleEntry[]): boolean {
  for (const { rule } of entries) if (rule.mayGiveBack) return true;
  return false;
}

/** Throws if the client of a request has left. */
function refuseIfClosed(request: LimitedRequest, rules: readonly Rule[]): void {
  if (request.isClosed && !rules.every(isShadow)) throw clientClosedRequest();
}

/** Shadow limits never reject. */
function isShadow({ limit }: Rule): boolean {
  return limit.shadow;
}

function isAllowed({ allowed }: StoreDecision): boolean {
  return allowed;
}
