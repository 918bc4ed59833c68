import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { RequestLimiter } from '../request/request-limiter.js';

/**
 * Checks the limits that need to know the user: Nest runs it after all guards, before pipes and handler. Where no response
 * says how a request ended, it sees what the handler does.
 */
@Injectable()
export class RateLimitInterceptor implements NestInterceptor {
  constructor(private readonly limiter: RequestLimiter) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> | Promise<Observable<unknown>> {
    return this.limiter.intercept(context, next);
  }
}
