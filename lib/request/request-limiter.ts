import {
  type CallHandler,
  type ExecutionContext,
  HttpException,
  Inject,
  Injectable,
  type OnModuleDestroy,
} from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { defer, type Observable } from 'rxjs';
import { Attempts } from '../errors/attempts.js';
import { refundOf } from '../stores/store-decision.js';
import { checkResultOf } from '../stores/store-decision.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { isRefusal } from '../limits/check-result.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import { Refusals } from './refusals.js';
import { ResponseHeaders } from './response-headers.js';
import { Lease } from '../limiter/lease.js';
import type { Outcome } from '../config/limit-definition.js';
import { LimitRegistry } from '../rules/limit-registry.js';
import type { Plan } from '../rules/plan.js';
import { PlanRegistry } from '../rules/plan-registry.js';
import { type Awaitable, isPromise, mapAll } from '../util/awaitable.js';
import type { Rule, RuleEntry } from '../rules/rule.js';
import { RATE_LIMIT_STORE } from '../config/tokens.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { withExpectedWait } from '../limiter/hold-times.js';
import { WaitQueues } from '../limiter/wait-queues.js';
import { connectionOf, isGone, isLost } from '../transports/connection.js';
import type { RequestParts, RequestReader } from '../transports/request-reader.js';
import { callOf, partsOf, Transports } from './transports.js';
import { clientLeft } from './client-left.js';
import { findMiddlewareState, openMiddlewareState, adoptMiddlewareChecks } from './middleware-state.js';
import { RequestCompletion } from './request-completion.js';
import { Holds } from './hold.js';
import {
  type Checked,
  chargesOf,
  findState,
  type GuardContinuation,
  openState,
  type RequestCharge,
  type RequestState,
} from './request-state.js';
import { HandlerRun } from './handler-run.js';

/** Checks requests: once in the guard and, where a limit needs to know the user, once more after all guards. */
@Injectable()
export class RequestLimiter implements GuardContinuation, OnModuleDestroy {
  private readonly holds = new Holds();
  private readonly attempts = new Attempts(logger);

  constructor(
    private readonly limits: LimitRegistry,
    private readonly plans: PlanRegistry,
    private readonly headers: ResponseHeaders,
    private readonly refusals: Refusals,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    private readonly room: WaitQueues,
    private readonly transports: Transports,
  ) {}

  /** Is called by Nest before it waits for the requests that are under way: nobody is held any more. */
  onModuleDestroy(): void {
    this.holds.close();
  }

  /** The middleware's part: what needs no route. Returns nothing if there is nothing to wait for. */
  beforeRoute(request: object, response: object): Promise<void> | undefined {
    const { middlewareRules } = this.limits;
    if (middlewareRules.length === 0) return undefined;
    const context = new ExecutionContextHost([request, response]);
    const state = openMiddlewareState(request);
    return (state.middleware ??= this.check(
      middlewareRules,
      context,
      partsOf(this.transports.of(context), context),
      state,
    ));
  }

  /** The guard's part. Returns nothing if there is nothing to wait for. */
  beforeGuards(context: ExecutionContext): Promise<void> | undefined {
    const plan = this.plans.of(context.getClass(), context.getHandler());
    if (plan.isEmpty) return undefined;
    const reader = this.transports.of(context);
    const state = openState(context, callOf(reader, context), this);
    return (state.guard ??= refusing(reader, context, this.firstCheck(plan, context, reader, state)));
  }

  /** The interceptor's part, for requests that a guard has seen. */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>> {
    return this.afterGuards(context)?.then(() => this.observe(context, next)) ?? this.observe(context, next);
  }

  /** The check after the guards. Returns nothing if there is nothing to wait for. */
  afterGuards(context: ExecutionContext): Promise<void> | undefined {
    const plan = this.plans.of(context.getClass(), context.getHandler());
    if (!plan.continuesAfterGuards) return undefined;
    const reader = this.transports.of(context);
    const state = findState(context, callOf(reader, context));
    if (state?.guard === undefined) return undefined;
    return (state.authenticated ??= refusing(reader, context, this.secondCheck(plan, context, reader, state)).catch(
      (error: unknown) => {
        // The handler will not run, and where there is no connection nobody else tells of the end.
        state.completion?.handlerEnded({ failed: true, error });
        throw error;
      },
    ));
  }

  /** Watches what the handler does, if its end matters to a limit. */
  private observe(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const found = findState(context, callOf(this.transports.of(context), context));
    const checks = [found, this.earlyOf(context)].filter((each) => each?.completion !== undefined);
    if (checks.length === 0) return next.handle();
    const run = new HandlerRun();
    const handled = run.lead(context.getHandler(), () => next.handle());
    return defer(() => {
      const endings = checks.flatMap((check) => check?.completion ?? []);
      if (endings.some(({ wasClosed }) => wasClosed)) throw clientLeft();
      for (const lease of checks.flatMap((check) => check?.leases ?? [])) lease.keepAlive();
      const runs = endings.map((ending) => ending.handlerStarted());
      return run.watch(handled, context, (end) => {
        for (const ended of runs) ended(end);
      });
    });
  }

  /** What a middleware checked of the request behind a call, if the end of that may matter. */
  private earlyOf(context: ExecutionContext): Checked | undefined {
    if (!this.limits.middlewareRules.some(({ waitsForEnd }) => waitsForEnd)) return undefined;
    return findMiddlewareState(partsOf(this.transports.of(context), context).request);
  }

  private async firstCheck(
    plan: Plan,
    context: ExecutionContext,
    reader: RequestReader,
    state: RequestState,
  ): Promise<void> {
    const parts = partsOf(reader, context);
    let rules = plan.guard;
    if (plan.hasSources && !plan.asksLater(parts)) {
      state.rules = await plan.ask(context);
      rules = state.rules.filter(({ phase }) => phase !== 'authenticated');
    }
    if (plan.hasMiddlewareRules) rules = adoptMiddlewareChecks(parts, state, rules);
    await this.check(rules, context, parts, state, plan.hasSources && state.rules === undefined);
  }

  private async secondCheck(
    plan: Plan,
    context: ExecutionContext,
    reader: RequestReader,
    state: RequestState,
  ): Promise<void> {
    const asked = state.rules !== undefined;
    let rules = plan.authenticated;
    if (plan.hasSources) {
      state.rules ??= await plan.ask(context);
      await this.leaveReplaced(state.rules, state);
      // Functions that could only now be asked may have given limits of either phase.
      const before = asked ? new Set<Rule>() : new Set(plan.guard);
      rules = state.rules.filter((rule) => rule.phase === 'authenticated' || (!asked && !before.has(rule)));
    }
    await this.check(rules, context, partsOf(reader, context), state);
  }

  /** Functions that could only now be asked may have given nearer limits of names that were already checked. */
  private async leaveReplaced(rules: readonly Rule[], state: RequestState): Promise<void> {
    for (let index = state.checked.length - 1; index >= 0; index--) {
      if (rules.includes(state.checked[index]!.rule)) continue;
      state.checked.splice(index, 1);
      state.decisions.splice(index, 1);
    }
    // What a middleware checked holds for every route.
    const kept = [...rules, ...(state.middleware?.applicable ?? [])];
    await this.giveBack(chargesOf(state).filter(({ rule }) => !kept.includes(rule)));
  }

  /** One atomic check. */
  private async check(
    rules: readonly Rule[],
    context: ExecutionContext,
    parts: RequestParts,
    state: Checked,
    mayReplace = false,
  ): Promise<void> {
    if (rules.length === 0) return;
    refuseIfLeft(parts, rules);
    state.applicable.push(...rules);
    const collected = mapAll(rules, (rule) => rule.entry(context, parts));
    const entries = (isPromise(collected) ? await collected : collected).filter((entry) => entry !== undefined);
    // While functions were asked, the client may have left, and taken its address along.
    if (isPromise(collected)) refuseIfLeft(parts, rules);
    if (entries.length === 0) return;
    const refundable = mayReplace || entries.some(({ rule }) => rule.mayGiveBack);
    const decisions = await this.decide(entries, context, parts, refundable);
    state.checked.push(...entries);
    state.decisions.push(...decisions);
    const limits = state.checked.map(({ limit }) => limit);
    const result = (state.result = checkResultOf(state.decisions, limits));
    this.headers.tell(parts, result, limits);
    if (!result.allowed) {
      const refusing = state.checked[result.decisions.indexOf(result.tightest)]?.rule;
      const refused = limits.filter((limit, index) => isRefusal(limit, result.decisions[index]!));
      const names = refused.map(({ name }) => name);
      throw this.refusals.exceeded(context, parts.response, result, names, refusing?.answer);
    }
    if (!refundable) {
      state.deferredCharges.push(() => this.chargesOf(entries, decisions));
      return;
    }
    const charges = this.chargesOf(entries, decisions);
    state.charges.push(...charges);
    this.follow(charges, context, parts, state);
    // Of this check alone: what the first one held has been held.
    const delayMs = Math.max(...decisions.map((each, index) => (entries[index]?.limit.shadow ? 0 : each.delayMs)));
    const end = delayMs > 0 ? await this.holds.hold(delayMs, connectionOf(parts.response)) : 'over';
    if (end === 'over') return;
    await this.giveBack(charges);
    throw end === 'left' ? clientLeft() : this.refusals.shuttingDown(context, parts.response);
  }

  private async decide(
    entries: readonly RuleEntry[],
    context: ExecutionContext,
    { response }: RequestParts,
    refundable: boolean,
  ): Promise<StoreDecision[]> {
    try {
      const [decisions] = (await this.store.check([{ entries, refundable }])) as [StoreDecision[]];
      if (decisions.every(({ allowed }) => allowed)) return decisions;
      const now = performance.now();
      return decisions.map((decision, index) => withExpectedWait(decision, entries[index]!, now));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      throw this.refusals.unavailable(context, response, error);
    }
  }

  /** Sees to what the end of the request decides: what does not count is given back, and what is held is released. */
  private follow(
    charges: readonly RequestCharge[],
    context: ExecutionContext,
    { response }: RequestParts,
    state: Checked,
  ): void {
    const waiting = charges.filter(({ rule }) => rule.waitsForEnd);
    if (waiting.length === 0) return;
    const leases = waiting.flatMap((charge) => {
      const { limit, ticket, source } = charge;
      if (limit.algorithm.holding === undefined || ticket === undefined) return [];
      return new Lease(
        { limit, identity: charge.identity, units: charge.units, ticket, source },
        this.store,
        this.room,
      );
    });
    state.leases.push(...leases);
    const connection = connectionOf(response);
    // Without a connection nobody may tell of the end unless the handler runs.
    if (connection !== undefined) for (const lease of leases) lease.keepAlive();
    state.completion ??= new RequestCompletion(context, connection);
    // Nobody waits for what follows: a store of the user's own that fails otherwise than stores do must not end the process.
    state.completion.onOver(() => {
      for (const lease of leases) lease.release().catch(logFailure);
    });
    state.completion.onEnd((outcome) => {
      this.leaveUncounted(waiting, outcome).catch(logFailure);
    });
  }

  /** Gives back what does not count, as the request ended so. */
  private async leaveUncounted(charges: readonly RequestCharge[], outcome: Outcome): Promise<void> {
    const countable = charges.filter(({ limit }) => limit.algorithm.holding === undefined);
    const collected = mapAll(countable, ({ rule }) => this.counts(rule, outcome));
    const counted = isPromise(collected) ? await collected : collected;
    await this.giveBack(countable.filter((_, index) => !counted[index]));
  }

  /** A function of the user's that fails must not make a request free. */
  private counts(rule: Rule, outcome: Outcome): Awaitable<boolean> {
    const failed = (error: unknown) => {
      this.attempts.tell(messages.countFailed(rule.name), error);
      return true;
    };
    try {
      const counted = rule.counts(outcome);
      return isPromise(counted) ? Promise.resolve(counted).catch(failed) : counted;
    } catch (error) {
      return failed(error);
    }
  }

  private chargesOf(entries: readonly RuleEntry[], decisions: readonly StoreDecision[]): RequestCharge[] {
    return entries.flatMap(({ rule, limit, identity, cost }, index) => {
      const decision = decisions[index];
      if (decision?.allowed !== true) return [];
      const charge = refundOf({ limit, identity, units: cost }, decision);
      return { ...charge, rule, settled: false, returned: false, store: this.store };
    });
  }

  private async giveBack(charges: readonly RequestCharge[]): Promise<void> {
    const open = charges.filter(({ returned, units }) => !returned && units > 0);
    if (open.length === 0) return;
    for (const charge of open) charge.settled = charge.returned = true;
    try {
      // The limit may have another rate by now.
      await this.store.refund(open.map(({ rule, ...charge }) => ({ ...charge, limit: rule.limit })));
    } catch (error) {
      // Nobody waits for this request any more, and its units come back by themselves in time.
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }
}

/** A refusal becomes the error that its transport knows. */
function refusing(reader: RequestReader, context: ExecutionContext, check: Promise<void>): Promise<void> {
  if (reader.refuse === undefined) return check;
  return check.catch(async (error: unknown) => {
    throw error instanceof HttpException ? await reader.refuse?.(error, context) : error;
  });
}

/** Nobody waits for an answer any more, or nobody can say whose request it was. */
function refuseIfLeft({ request, response }: RequestParts, rules: readonly Rule[]): void {
  const hasLeft = isGone(connectionOf(response)) || isLost(request?.socket);
  if (hasLeft && !rules.every(onlyWatches)) throw clientLeft();
}

/** A shadow refuses nobody, whatever the reason. */
function onlyWatches({ limit }: Rule): boolean {
  return limit.shadow;
}

function logFailure(error: unknown): void {
  logger.error(messages.storeFailed(String(error)), error instanceof Error ? error.stack : undefined);
}
