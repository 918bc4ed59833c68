import { type CallHandler, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { Phase } from '../../app/config/common-limit-options.js';
import { RouteRulesRegistry } from '../../app/rules/route-rules-registry.js';
import { andThen, type Awaitable, isPromise } from '../../engine/util/awaitable.js';
import { Answers } from './answers.js';
import { runOf } from './call-run.js';
import { Completions } from './completions.js';
import { DeniedAddresses } from './denied-addresses.js';
import type { GuardContinuation, LimitedRequest } from './limited-request.js';
import { type PendingCheck, RequestCheck } from './request-check.js';
import { findEarly, Requests } from './requests.js';
import { watchHandler } from './handler-run.js';

/** Runs the limits of requests: in the middleware, in the guard and, if a limit needs to know the user, after all guards. */
@Injectable()
export class RequestLimiter implements GuardContinuation {
  constructor(
    private readonly registry: RouteRulesRegistry,
    private readonly requests: Requests,
    private readonly requestCheck: RequestCheck,
    private readonly answers: Answers,
    private readonly completions: Completions,
    private readonly deniedAddresses: DeniedAddresses,
  ) {}

  /**
   * The middleware's part: checks that need no route. Returns `true` if there is nothing to wait for, and rejects if the request is
   * rejected.
   */
  beforeRoute(request: object, response: object): Awaitable<true> {
    const routeRules = this.registry.ofMiddleware;
    if (routeRules.middleware.length === 0) return true;
    const limited = this.requests.ofMiddleware(request, response, routeRules, this);
    return (limited.middlewareCheck ??= this.run('middleware', limited));
  }

  /** The guard's part. Returns the same as `beforeRoute`. */
  beforeGuards(context: ExecutionContext): Awaitable<true> {
    const routeRules = this.registry.of(context.getClass(), context.getHandler());
    if (this.registry.ofMiddleware.middlewareWaitsForEnd) this.followEarly(context);
    if (routeRules.isEmpty && (routeRules.skipsAll || !this.deniedAddresses.mayRefuse)) return true;
    const request = this.requests.ofCall(context, routeRules, this);
    if (routeRules.waitsForEnd) request.run ??= runOf(context.getArgs());
    return (request.guardCheck ??= this.run('guard', request));
  }

  /** The check after the guards. Returns the same as `beforeRoute`. */
  afterGuards(context: ExecutionContext): Awaitable<true> {
    const routeRules = this.registry.of(context.getClass(), context.getHandler());
    if (!routeRules.continuesAfterGuards) return true;
    const request = this.requests.find(context);
    if (request?.guardCheck === undefined) return true;
    return (request.lastCheck ??= this.run('authenticated', request.begin(context)));
  }

  /** The interceptor's part, for requests that a guard has seen. */
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>> {
    const handle = () => watchHandler(this.endingWith(context), context, next);
    const checked = this.afterGuards(context);
    return checked === true ? handle() : checked.then(handle);
  }

  /** Runs one phase of a request. Returns a promise if it is rejected, or has to wait for the store or for its turn. */
  private run(phase: Phase, request: LimitedRequest): Awaitable<true> {
    try {
      const { deniedAddresses } = this;
      if (deniedAddresses.mayRefuse && phase !== 'authenticated' && deniedAddresses.refuses(request, request)) {
        throw this.answers.denied(request);
      }
      const done = andThen(this.requestCheck.checkPhase(phase, request), (check) => this.answer(request, check));
      return isPromise(done) ? done.catch((error: unknown) => this.refuse(request, error)) : done;
    } catch (error) {
      return this.refuse(request, error);
    }
  }

  /** Reports a check in the response. Throws or rejects if the request is rejected. */
  private answer(request: LimitedRequest, check: PendingCheck | undefined): Awaitable<true> {
    if (check === undefined) return true;
    this.answers.describe(request, check);
    return this.completions.complete(request, check)?.then(() => true) ?? true;
  }

  /** A rejection always arrives as a rejected promise, even if it was known immediately. */
  private async refuse(request: LimitedRequest, error: unknown): Promise<never> {
    const refusal = await this.answers.translate(request, error);
    throw this.completions.refuse(request, this.earlierOf(request), refusal);
  }

  /** Makes the leases of a middleware last while guards run. */
  private followEarly(context: ExecutionContext): void {
    const run = runOf(context.getArgs());
    if (run !== undefined) this.requests.findEarly(context)?.completion?.follow(run);
  }

  /** The requests of a call, in guards and in a middleware, whose end has to be known. */
  private endingWith(context: ExecutionContext): LimitedRequest[] {
    const requests = [this.requests.find(context)];
    if (this.registry.ofMiddleware.middlewareWaitsForEnd) requests.push(this.requests.findEarly(context));
    return requests.filter((each) => each?.completion !== undefined) as LimitedRequest[];
  }

  /** The request of a middleware, if its end has to be known, even if its route does not have these limits. */
  private earlierOf(request: LimitedRequest): LimitedRequest | undefined {
    if (!this.registry.ofMiddleware.middlewareWaitsForEnd) return undefined;
    try {
      return findEarly(request.parts.request);
    } catch {
      // A failing reader has already failed the request, and can't find the one of a middleware.
      return undefined;
    }
  }
}
