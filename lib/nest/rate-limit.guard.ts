import { type CanActivate, type ExecutionContext, Injectable, SetMetadata } from '@nestjs/common';
import { OWN_GUARD } from '../app/rules/bound-guards.js';
import { refuseByHand } from './missing-module.js';
import { RequestLimiter } from './request/request-limiter.js';

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
