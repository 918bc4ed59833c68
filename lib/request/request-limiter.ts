import { type CallHandler, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { Phase } from '../config/limit-definition.js';
import { PlanRegistry } from '../rules/plan-registry.js';
import { isPromise } from '../util/awaitable.js';
import { Answers } from './answers.js';
import { Completions } from './completions.js';
import type { GuardContinuation, LimitedRequest } from './limited-request.js';
import { RequestCheck } from './request-check.js';
import { Requests } from './requests.js';
import { selectRules } from './select-rules.js';
import { watchHandler } from './watch-handler.js';

/** Leads requests through their limits: in the middleware, in the guard and, where a limit needs to know the user, after all guards. */
@Injectable()
export class RequestLimiter implements GuardContinuation {
  constructor(
    private readonly plans: PlanRegistry,
    private readonly requests: Requests,
    private readonly requestCheck: RequestCheck,
    private readonly answers: Answers,
    private readonly completions: Completions,
  ) {}

  /** The middleware's part: what needs no route. Returns nothing if there is nothing to wait for. */
  beforeRoute(request: object, response: object): Promise<void> | undefined {
    const plan = this.plans.ofMiddleware;
    if (plan.middleware.length === 0) return undefined;
    const limited = this.requests.ofMiddleware(request, response, plan, this);
    return (limited.checks.middleware ??= this.run('middleware', limited));
  }

  /** The guard's part. Returns nothing if there is nothing to wait for. */
  beforeGuards(context: ExecutionContext): Promise<void> | undefined {
    const plan = this.plans.of(context.getClass(), context.getHandler());
    if (plan.isEmpty) return undefined;
    const request = this.requests.ofCall(context, plan, this);
    return (request.checks.guard ??= this.run('guard', request));
  }

  /** The check after the guards. Returns nothing if there is nothing to wait for. */
  afterGuards(context: ExecutionContext): Promise<void> | undefined {
    const plan = this.plans.of(context.getClass(), context.getHandler());
    if (!plan.continuesAfterGuards) return undefined;
    const request = this.requests.find(context);
    if (request?.checks.guard === undefined) return undefined;
    return (request.checks.authenticated ??= this.run('authenticated', request.begin(context)));
  }

  /** The interceptor's part, for requests that a guard has seen. */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>> {
    const handle = () => watchHandler(this.endingWith(context), context, next);
    return this.afterGuards(context)?.then(handle) ?? handle();
  }

  /** The way of a request through one phase. */
  private async run(phase: Phase, request: LimitedRequest): Promise<void> {
    try {
      const selected = selectRules(phase, request);
      const rules = isPromise(selected) ? await selected : selected;
      const check = await this.requestCheck.checkRules(request, rules);
      if (check === undefined) return;
      this.answers.describe(request, check);
      const hold = this.completions.complete(request, check);
      if (hold !== undefined) await hold;
    } catch (error) {
      throw this.completions.refuse(request, await this.answers.translate(request, error));
    }
  }

  /** What was checked for a call, by guards and by a middleware, as far as its end matters. */
  private endingWith(context: ExecutionContext): LimitedRequest[] {
    const requests = [this.requests.find(context)];
    if (this.plans.ofMiddleware.middlewareWaitsForEnd) requests.push(this.requests.findEarly(context));
    return requests.filter((each) => each?.completion !== undefined) as LimitedRequest[];
  }
}
