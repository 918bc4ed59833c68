import type { CallHandler, ExecutionContext } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { Phase } from '../config/limit-definition.js';
import type { Lease } from '../limiter/lease.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { CheckResult } from '../limits/decision.js';
import type { Plan } from '../rules/plan.js';
import type { Rule, RuleEntry } from '../rules/rule.js';
import { checkResultOf } from '../stores/store-decision.js';
import type { StoreDecision } from '../stores/store.js';
import { type ClosableResponse, connectionOf, isGone, isLost } from '../transports/connection.js';
import { partsOf } from '../transports/read-request.js';
import type { RequestParts, RequestReader } from '../transports/request-reader.js';
import { chargesOf, type RequestCharge, type StoreCheck } from './charges.js';
import type { RequestCompletion } from './request-completion.js';

/** Goes on with a call after the guards. */
export interface GuardContinuation {
  /** The check after the guards. Returns nothing if there is nothing to wait for. */
  afterGuards(context: ExecutionContext): Promise<void> | undefined;
  /** The same, and then the handler. */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>>;
}

/** One request on its way through its limits: what is known of it, and what has been checked so far. */
export class LimitedRequest {
  /** The check of each phase. A second guard or middleware on the same request takes part in the first one's. */
  readonly checks: { [phase in Phase]: Promise<void> | undefined } = {
    middleware: undefined,
    guard: undefined,
    authenticated: undefined,
  };
  /** All rules of the checks so far, also those that do not apply to the request. */
  readonly applicable: Rule[] = [];
  /** What the store was asked so far. A limit keeps the rate here that it was checked with. */
  readonly entries: RuleEntry[] = [];
  /** What the store answered, in the same order. */
  readonly decisions: StoreDecision[] = [];
  /** What is held for the request. */
  readonly leases: Lease[] = [];
  /** The sum of all decisions so far. */
  result?: CheckResult;
  /** All rules of the request, once the route's functions have been asked. */
  rules?: readonly Rule[];
  /** What a middleware checked before. */
  earlier?: LimitedRequest | undefined;
  /** How the request ends, if that matters. */
  completion?: RequestCompletion;
  private readonly charged: RequestCharge[] = [];
  private readonly deferred: StoreCheck[] = [];
  private knownParts: RequestParts | undefined;

  constructor(
    private currentContext: ExecutionContext,
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

  /** What was charged so far. */
  get charges(): RequestCharge[] {
    for (const check of this.deferred.splice(0)) this.charged.push(...chargesOf(check));
    return this.charged;
  }

  /** Whether functions that are still to be asked may replace limits that are checked now. */
  get mayReplaceLimits(): boolean {
    return this.plan.hasSources && this.rules === undefined;
  }

  /** Adds the decisions of a check, and sums all up. */
  record({ entries, decisions }: StoreCheck): CheckResult {
    this.entries.push(...entries);
    this.decisions.push(...decisions);
    return (this.result = checkResultOf(this.decisions, this.limits));
  }

  /** Adds the charges of a check. */
  charge(check: StoreCheck): RequestCharge[] {
    const charges = chargesOf(check);
    this.charged.push(...charges);
    return charges;
  }

  /** Adds the charges of a check once they are asked for, which is seldom. */
  deferCharge(check: StoreCheck): void {
    this.deferred.push(check);
  }

  /** Takes over what a middleware checked of some rules. Returns the rules that are left to check. */
  adopt(earlier: LimitedRequest, rules: readonly Rule[]): readonly Rule[] {
    this.earlier = earlier;
    const isAdopted = ({ rule }: { readonly rule: Rule }) => rules.includes(rule);
    this.applicable.push(...earlier.applicable.filter((rule) => rules.includes(rule)));
    this.entries.push(...earlier.entries.filter(isAdopted));
    this.decisions.push(...earlier.decisions.filter((_, index) => isAdopted(earlier.entries[index]!)));
    this.charged.push(...earlier.charges.filter(isAdopted));
    if (this.entries.length > 0) this.result = checkResultOf(this.decisions, this.limits);
    return rules.filter((rule) => !earlier.applicable.includes(rule));
  }

  /** Drops the decisions of all rules but some. Returns the charges of the others, those of the middleware excepted. */
  keepOnly(rules: readonly Rule[]): RequestCharge[] {
    for (let index = this.entries.length - 1; index >= 0; index--) {
      if (rules.includes(this.entries[index]!.rule)) continue;
      this.entries.splice(index, 1);
      this.decisions.splice(index, 1);
    }
    // What a middleware checked holds for every route.
    const kept = [...rules, ...(this.earlier?.applicable ?? [])];
    return this.charges.filter(({ rule }) => !kept.includes(rule));
  }
}
