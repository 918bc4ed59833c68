import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  SetMetadata,
} from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { from, mergeMap, type Observable, throwError } from 'rxjs';
import { RateLimitExceededException } from '../app/http/rate-limit.exceptions.js';
import { OWN_GUARD } from '../app/rules/guard-check.js';
import { asMcpContext, mcpRefusal, refusalData } from '../app/transports/refusal.js';
import { isPromise } from '../engine/util/awaitable.js';
import { refuseByHand } from './missing-module.js';
import { RequestLimiter } from './request/request-limiter.js';
import { ThrownRefusals } from './request/thrown-refusals.js';

/**
 * Rejects requests that exceed a limit, and holds those that a `leaky-bucket` delays. The module binds it to all routes; with `guard:
 * false`, bind it with `@UseGuards(RateLimitGuard)`. Even if it is bound twice, a request is charged once.
 */
@Injectable()
@SetMetadata(OWN_GUARD, true)
export class RateLimitGuard implements CanActivate {
  /** @internal */
  constructor(private readonly limiter: RequestLimiter) {
    refuseByHand('RateLimitGuard', limiter);
  }

  /** Checks a request. Throws `RateLimitExceededException`, and the errors of `onMissingKey` and `onStoreError`. */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.limiter.beforeGuards(context);
  }
}

/**
 * Checks the limits that need to know the user: Nest runs it after all guards, before pipes and handler. If no response shows how a request
 * ended, it watches the handler.
 */
@Injectable()
export class RateLimitInterceptor implements NestInterceptor {
  constructor(private readonly limiter: RequestLimiter) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>> {
    return this.limiter.intercept(context, next);
  }
}

/**
 * Responds to rejections that code of the app throws. It is bound before all other global filters. Nest uses the last one that matches, so
 * the app's own filters have precedence. Global filters do not run for gateways.
 */
@Injectable()
@Catch(RateLimitExceededException)
export class ThrownRefusalsFilter implements ExceptionFilter<RateLimitExceededException> {
  constructor(
    private readonly refusals: ThrownRefusals,
    private readonly host: HttpAdapterHost,
  ) {}

  catch(exception: RateLimitExceededException, host: ArgumentsHost): unknown {
    const type = host.getType<string>();
    const isThrown = !exception.isAnswered;
    const completed = this.refusals.complete(exception, host);
    if (!isPromise(completed)) return this.answer(exception, host, type, isThrown);
    const answered = completed.then(() => this.answer(exception, host, type, isThrown));
    return type === 'rpc' ? from(answered).pipe(mergeMap((answer) => answer as Observable<unknown>)) : answered;
  }

  private answer(exception: RateLimitExceededException, host: ArgumentsHost, type: string, isThrown: boolean): unknown {
    if (type === 'http') {
      new BaseExceptionFilter(this.host.httpAdapter).catch(exception, host);
      return undefined;
    }
    if (!isThrown) return undefined;
    if (type === 'rpc') {
      if (asMcpContext(host.getArgs()[1]) === undefined) return throwError(() => refusalData(exception));
      return from(mcpRefusal(exception)).pipe(mergeMap((error) => throwError(() => error)));
    }
    // For any other kind of call, the returned value is the response, and a rejected promise its error.
    return this.refusals.refuse(exception, host);
  }
}
