import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { RequestLimiter } from './request/request-limiter.js';

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
