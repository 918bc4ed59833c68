import type { CallHandler, ExecutionContext } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { Lease } from '../limiter/lease.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { CheckResult } from '../limits/decision.js';
import type { Plan } from '../rules/plan.js';
import type { Rule } from '../rules/rule.js';
import type { RuleEntry } from '../rules/resolve/resolve.js';
import { checkResultOf } from '../stores/store-decision.js';
import type { StoreDecision } from '../stores/store.js';
import { type ClosableResponse, connectionOf, isGone, isLost } from '../transports/connection.js';
import { partsOf } from '../transports/read-request.js';
import type { RequestParts, RequestReader } from '../transports/request-reader.js';
import type { Awaitable } from '../util/awaitable.js';
import type { CallRun } from './call-run.js';
import { requestChargesOf, type RequestCharge, type StoreCheck } from './charges.js';
import type { RequestCompletion } from './request-completion.js';

/** Goes on with a call after the guards. */
export interface GuardContinuation {
  /** The check after the guards: `true` at once if there is nothing to wait for. */
  afterGuards(context: ExecutionContext): Awaitable<true>;
  /** The same, and then the handler. */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>>;
}

const NONE: readonly never[] = [];

/**
 * One request on its way through its limits: what is known of it, and what has been checked so far. There is one for each request, so
 * its lists are made only once there is more than one check.
 */
export class LimitedRequest {
  /** The check of a middleware, once it has begun. A second middleware on the same request takes part in the first one's. */
  middlewareCheck: Awaitable<true> | undefined;
  /** The same of guards. */
  guardCheck: Awaitable<true> | undefined;
  /** The same of what follows the guards. */
  lastCheck: Awaitable<true> | undefined;
  /** All rules of the checks so far, also those that do not apply to the request. */
  applicable: readonly Rule[] = NONE;
  /** What the store was asked so far. A limit keeps the rate here that it was checked with. */
  entries: readonly RuleEntry[] = NONE;
  /** What the store answered, in the same order. */
  decisions: readonly StoreDecision[] = NONE;
  /** What is held for the request. */
  leases: readonly Lease[] = NONE;
  /** All rules of the request, once the route's functions have been asked. */
  rules: readonly Rule[] | undefined;
  /** What a middleware checked before. */
  earlier: LimitedRequest | undefined;
  /** How the request ends, if that matters. */
  completion: RequestCompletion | undefined;
  /** What of the call is at work, where Nest leads it. */
  run: CallRun | undefined;
  /** The object that stands for the call, where that keeps this. */
  call: object | undefined;
  /** Another handler's request with the same call. */
  other: LimitedRequest | undefined;
  private charged: RequestCharge[] | undefined;
  /** Checks of which nobody has asked yet for the charges. */
  private deferred: readonly StoreCheck[] = NONE;
  private knownParts: RequestParts | undefined;
  private knownResult: CheckResult | undefined;

  constructor(
    private currentContext: ExecutionContext,
    /** The class of its handler. */
    readonly type: object,
    readonly handler: object,
    readonly reader: RequestReader,
    readonly plan: Plan,
    /** What goes on with the call after the guards. */
    readonly continuation: GuardContinuation,
  ) {}

  /** Begins a phase, which has a context of its own. */
  begin(context: ExecutionContext): this {
    this.currentContext = context;
    this.knownParts = undefined;
    return this;
  }

  get context(): ExecutionContext {
    return this.currentContext;
  }

  /** The request and the response. They are read once a phase, since guards may find a user. */
  get parts(): RequestParts {
    return (this.knownParts ??= partsOf(this.reader, this.currentContext));
  }

  /** The connection that the response goes out on, if it is one of Node's. */
  get connection(): ClosableResponse | undefined {
    return connectionOf(this.parts.response);
  }

  /** Whether the client has left, or its address is lost, so that the request cannot be counted for it. */
  get isClosed(): boolean {
    return isGone(this.connection) || isLost(this.parts.request?.socket);
  }

  /** The limits that were checked, in the order of the decisions. */
  get limits(): CompiledLimit[] {
    return this.entries.map(({ limit }) => limit);
  }

  /** The sum of all decisions so far, if there are any. */
  get result(): CheckResult | undefined {
    if (this.entries.length === 0) return undefined;
    return (this.knownResult ??= checkResultOf(this.decisions, this.entries));
  }

  /** What was charged so far. */
  get charges(): RequestCharge[] {
    const charged = (this.charged ??= []);
    for (const check of this.deferred) charged.push(...requestChargesOf(check));
    this.deferred = NONE;
    return charged;
  }

  /** Whether functions that are still to be asked may replace limits that are checked now. */
  get mayReplaceLimits(): boolean {
    return this.plan.hasSources && this.rules === undefined;
  }

  /** Adds the rules of a check. */
  apply(rules: readonly Rule[]): void {
    this.applicable = joined(this.applicable, rules);
  }

  /** Adds the decisions of a check, and sums all up. */
  record({ entries, decisions }: StoreCheck): CheckResult {
    this.entries = joined(this.entries, entries);
    this.decisions = joined(this.decisions, decisions);
    return (this.knownResult = checkResultOf(this.decisions, this.entries));
  }

  /** Adds the charges of a check. */
  charge(check: StoreCheck): RequestCharge[] {
    const charges = requestChargesOf(check);
    this.charges.push(...charges);
    return charges;
  }

  /** Adds the charges of a check once they are asked for, which is seldom. */
  deferCharge(check: StoreCheck): void {
    this.deferred = joined(this.deferred, [check]);
  }

  /** Adds what is held for the request. */
  hold(leases: readonly Lease[]): void {
    this.leases = joined(this.leases, leases);
  }

  /** Takes over what a middleware checked of some rules. Returns the rules that are left to check. */
  adopt(earlier: LimitedRequest, rules: readonly Rule[]): readonly Rule[] {
    this.earlier = earlier;
    const isAdopted = ({ rule }: { readonly rule: Rule }) => rules.includes(rule);
    this.apply(earlier.applicable.filter((rule) => rules.includes(rule)));
    this.entries = joined(this.entries, earlier.entries.filter(isAdopted));
    const decisions = earlier.decisions.filter((_, index) => isAdopted(earlier.entries[index]!));
    this.decisions = joined(this.decisions, decisions);
    this.charges.push(...earlier.charges.filter(isAdopted));
    this.knownResult = undefined;
    return rules.filter((rule) => !earlier.applicable.includes(rule));
  }

  /** Drops the decisions of all rules but some. Returns the charges of the others, those of the middleware excepted. */
  keepOnly(rules: readonly Rule[]): RequestCharge[] {
    const { entries } = this;
    this.entries = entries.filter(({ rule }) => rules.includes(rule));
    this.decisions = this.decisions.filter((_, index) => rules.includes(entries[index]!.rule));
    this.knownResult = undefined;
    // What a middleware checked holds for every route.
    const kept = [...rules, ...(this.earlier?.applicable ?? [])];
    return this.charges.filter(({ rule }) => !kept.includes(rule));
  }
}

/** Two lists as one: the second itself as long as the first is empty. */
function joined<T>(first: readonly T[], second: readonly T[]): readonly T[] {
  return first.length === 0 ? second : [...first, ...second];
}
