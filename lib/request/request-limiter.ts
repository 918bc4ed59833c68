import { type ExecutionContext, HttpException, Inject, Injectable, ServiceUnavailableException } from '@nestjs/common';
import { toCheckResult } from '../check-result.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { RateLimitExceededException } from '../http/rate-limit-exceeded.exception.js';
import { ResponseHeaders } from '../http/response-headers.js';
import { connectionOf, type Transport, transportOf } from '../http/transport.js';
import type { Plan } from '../plan/plan.js';
import { PlanRegistry } from '../plan/plan-registry.js';
import { isPromise, mapAll } from '../plan/promises.js';
import type { Rule, RuleEntry } from '../plan/rule.js';
import { RATE_LIMIT_STORE } from '../rate-limit.settings.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { hold } from './hold.js';
import { findState, openState, type RequestState } from './request-state.js';

/** The status that nginx gave to a request whose client did not wait for the answer. */
const CLIENT_CLOSED_REQUEST = 499;

/** Checks requests: once in the guard and, where a limit needs to know the user, once more after all guards. */
@Injectable()
export class RequestLimiter {
  constructor(
    private readonly plans: PlanRegistry,
    private readonly headers: ResponseHeaders,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
  ) {}

  /** The guard's part. Returns nothing if there is nothing to wait for. */
  beforeGuards(context: ExecutionContext): Promise<void> | undefined {
    const plan = this.plans.of(context.getClass(), context.getHandler());
    if (plan.isEmpty) return undefined;
    const state = openState(context);
    return (state.guard ??= this.firstCheck(plan, context, state));
  }

  /** The interceptor's part, for requests that a guard has seen. */
  afterGuards(context: ExecutionContext): Promise<void> | undefined {
    const plan = this.plans.of(context.getClass(), context.getHandler());
    if (!plan.goesOn) return undefined;
    const state = findState(context);
    if (state?.guard === undefined) return undefined;
    return (state.authenticated ??= this.secondCheck(plan, context, state));
  }

  private async firstCheck(plan: Plan, context: ExecutionContext, state: RequestState): Promise<void> {
    const transport = transportOf(context);
    let rules = plan.guard;
    if (plan.hasSources && !plan.asksLater(transport)) {
      state.rules = await plan.ask(context);
      rules = state.rules.filter(({ phase }) => phase === 'guard');
    }
    await this.check(rules, context, transport, state);
  }

  private async secondCheck(plan: Plan, context: ExecutionContext, state: RequestState): Promise<void> {
    const asked = state.rules !== undefined;
    let rules = plan.authenticated;
    if (plan.hasSources) {
      state.rules ??= await plan.ask(context);
      // Functions that could only now be asked may have given limits of either phase.
      const before = asked ? new Set<Rule>() : new Set(plan.guard);
      rules = state.rules.filter((rule) => rule.phase === 'authenticated' || (!asked && !before.has(rule)));
    }
    await this.check(rules, context, transportOf(context), state);
  }

  /** One atomic check. */
  private async check(
    rules: readonly Rule[],
    context: ExecutionContext,
    transport: Transport,
    state: RequestState,
  ): Promise<void> {
    if (rules.length === 0) return;
    const collected = mapAll(rules, (rule) => rule.entry(context, transport));
    const entries = (isPromise(collected) ? await collected : collected).filter((entry) => entry !== undefined);
    if (entries.length === 0) return;
    const decisions = await this.decide(entries, transport);
    for (const { rule } of entries) state.checked.push(rule);
    state.decisions.push(...decisions);
    const limits = state.checked.map(({ limit }) => limit);
    const result = (state.result = toCheckResult(state.decisions, limits));
    this.headers.tell(transport.response, result, limits);
    if (!result.allowed) {
      const refusing = state.checked[result.decisions.indexOf(result.tightest)];
      const refused = limits.filter(({ shadow }, index) => !shadow && result.decisions[index]?.allowed === false);
      const names = refused.map(({ name }) => name);
      throw new RateLimitExceededException(result, refusing?.message, names);
    }
    // Of this check alone: what the first one held has been held.
    const delayMs = Math.max(...decisions.map((each, index) => (entries[index]?.limit.shadow ? 0 : each.delayMs)));
    if (delayMs > 0 && !(await hold(delayMs, connectionOf(transport.response)))) {
      await this.giveBack(entries, decisions);
      throw new HttpException(messages.clientLeft(), CLIENT_CLOSED_REQUEST);
    }
  }

  private async decide(entries: readonly RuleEntry[], { response }: Transport): Promise<StoreDecision[]> {
    try {
      const [decisions] = await this.store.check([{ entries }]);
      return decisions as StoreDecision[];
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
      this.headers.set(response, 'Retry-After', '1');
      throw new ServiceUnavailableException(messages.unavailable(), { cause: error });
    }
  }

  private async giveBack(entries: readonly RuleEntry[], decisions: readonly StoreDecision[]): Promise<void> {
    const charged = entries.flatMap(({ limit, identity, cost }, index) =>
      decisions[index]?.allowed === true ? [{ limit, identity, units: cost, place: decisions[index].place }] : [],
    );
    try {
      await this.store.refund(charged);
    } catch (error) {
      // Nobody waits for this request any more, and its units come back by themselves in time.
      if (!(error instanceof RateLimitStoreError)) throw error;
    }
  }
}
