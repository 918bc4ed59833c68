import { type ArgumentsHost, Catch, type ExceptionFilter, Injectable } from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { from, mergeMap, type Observable, throwError } from 'rxjs';
import { RateLimitExceededException } from '../app/http/rate-limit-exceeded.exception.js';
import { ThrownRefusals } from './request/thrown-refusals.js';
import { isPromise } from '../engine/util/awaitable.js';
import { asMcpContext, mcpRefusal } from '../app/transports/mcp-refusal.js';
import { refusalData } from '../app/transports/refusal.js';

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
