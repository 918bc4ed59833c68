import type { CallHandler, ExecutionContext } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { Lease } from '../../app/limiter/lease.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckResult } from '../../engine/limits/decision.js';
import { routeOf } from '../../app/rules/call-route.js';
import type { RouteRules } from '../../app/rules/route-rules.js';
import type { Rule } from '../../app/rules/rule.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import { checkResultOf } from '../../storage/stores/store-decision.js';
import type { CheckOrigin, RequestRoute, StoreDecision } from '../../storage/stores/store.js';
import { type ClosableResponse, connectionOf, isGone, isLost } from '../../app/transports/connection.js';
import { partsOf } from '../../app/transports/read-request.js';
import type { RequestParts, RequestReader } from '../../app/transports/request-reader.js';
import type { Awaitable } from '../../engine/util/awaitable.js';
import type { CallRun } from './call-run.js';
import { requestChargesOf, type RequestCharge, type StoreCheck } from './charges.js';
import type { RequestCompletion } from './request-completion.js';

/** Continues a call after the guards. */
export interface GuardContinuation {
  /** The check after the guards: `true` immediately if there is nothing to wait for. */
  afterGuards(context: ExecutionContext): Awaitable<true>;
  /** Runs that check, and then the handler. */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>>;
}

const NONE: readonly never[] = [];

/**
 * The state of one request while its limits are checked. There is one for each request, so lists are only created if there is more than one
 * check.
 */
export class LimitedRequest implements CheckOrigin {
  /** The check of a middleware, once it has begun. A second middleware on the same request shares it. */
  middlewareCheck: Awaitable<true> | undefined;
  /** The check of the guard. A second guard on the same request shares it. */
  guardCheck: Awaitable<true> | undefined;
  /** The check after the guards. */
  lastCheck: Awaitable<true> | undefined;
  /** All rules of the checks so far, including those that do not apply to the request. */
  applicable: readonly Rule[] = NONE;
  /** The entries of the checks so far. Each limit stays in the version that was checked. */
  entries: readonly RuleEntry[] = NONE;
  /** The decisions on these entries, in the same order. */
  decisions: readonly StoreDecision[] = NONE;
  /** The leases of the request. */
  leases: readonly Lease[] = NONE;
  /** All rules of the request, once the route's functions have been called. */
  rules: readonly Rule[] | undefined;
  /** The request of a middleware that ran before. */
  earlier: LimitedRequest | undefined;
  /** Reports the end of the request, if a limit needs that. */
  completion: RequestCompletion | undefined;
  /** The running parts of the call, if Nest executes it. */
  run: CallRun | undefined;
  /** The object that identifies the call, if this request is stored there. */
  call: object | undefined;
  /** The request of another handler with the same call object. */
  other: LimitedRequest | undefined;
  private charged: RequestCharge[] | undefined;
  /** Checks whose charges have not been needed yet. */
  private deferred: readonly StoreCheck[] = NONE;
  private knownParts: RequestParts | undefined;
  private knownResult: CheckResult | undefined;

  constructor(
    private currentContext: ExecutionContext,
    /** The class of its handler. */
    readonly type: object,
    readonly handler: object,
    readonly reader: RequestReader,
    readonly routeRules: RouteRules,
    /** Continues the call after the guards. */
    readonly continuation: GuardContinuation,
  ) {}

  /** Starts a phase, which has its own context. */
  begin(context: ExecutionContext): this {
    this.currentContext = context;
    this.knownParts = undefined;
    return this;
  }

  get context(): ExecutionContext {
    return this.currentContext;
  }

  /** The request and the response. They are read once per phase, since guards may set a user. */
  get parts(): RequestParts {
    return (this.knownParts ??= partsOf(this.reader, this.currentContext));
  }

  get request(): object | undefined {
    return this.parts.request;
  }

  /** Its route, once that is known. Only hooks and subscribers use it. */
  get route(): RequestRoute | undefined {
    return routeOf(this.currentContext, this.routeRules.paths);
  }

  /** The connection of the response, if it is one of Node's. */
  get connection(): ClosableResponse | undefined {
    return connectionOf(this.parts.response);
  }

  /** True if the client has left, or its address is lost, so that the request cannot be counted for it. */
  get isClosed(): boolean {
    return isGone(this.connection) || isLost(this.parts.request?.socket);
  }

  /** The limits that were checked, in the order of the decisions. */
  get limits(): CompiledLimit[] {
    return this.entries.map(({ limit }) => limit);
  }

  /** The combined result of all decisions so far, if any. */
  get result(): CheckResult | undefined {
    if (this.entries.length === 0) return undefined;
    return (this.knownResult ??= checkResultOf(this.decisions, this.entries));
  }

  /** The charges so far. */
  get charges(): RequestCharge[] {
    const charged = (this.charged ??= []);
    for (const check of this.deferred) charged.push(...requestChargesOf(check));
    this.deferred = NONE;
    return charged;
  }

  /** True if functions that have not been called yet may replace limits that are checked now. */
  get mayReplaceLimits(): boolean {
    return this.routeRules.hasSources && this.rules === undefined;
  }

  /** Adds the rules of a check. */
  apply(rules: readonly Rule[]): void {
    this.applicable = joined(this.applicable, rules);
  }

  /** Adds the decisions of a check, and returns the combined result. */
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

  /** Adds the charges of a check once they are needed, which is rare. */
  deferCharge(check: StoreCheck): void {
    this.deferred = joined(this.deferred, [check]);
  }

  /** Adds leases of the request. */
  hold(leases: readonly Lease[]): void {
    this.leases = joined(this.leases, leases);
  }

  /** Takes over the check of a middleware. Returns the rules that still have to be checked. */
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

  /** Removes the decisions of all other rules. Returns their charges, except those of the middleware. */
  keepOnly(rules: readonly Rule[]): RequestCharge[] {
    const { entries } = this;
    this.entries = entries.filter(({ rule }) => rules.includes(rule));
    this.decisions = this.decisions.filter((_, index) => rules.includes(entries[index]!.rule));
    this.knownResult = undefined;
    // The limits of a middleware apply to every route.
    const kept = [...rules, ...(this.earlier?.applicable ?? [])];
    return this.charges.filter(({ rule }) => !kept.includes(rule));
  }
}

/** Joins two lists; returns the second one itself if the first is empty. */
function joined<T>(first: readonly T[], second: readonly T[]): readonly T[] {
  return first.length === 0 ? second : [...first, ...second];
}
