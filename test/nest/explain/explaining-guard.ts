import { type CanActivate, type ExecutionContext, Injectable, type Provider } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { type Explanation, LimiterService, RateLimitGuard } from '../../../lib/index.js';

/** What was explained of requests, in their order. */
export const explained: Explanation[] = [];

/** The last of them. */
export function lastExplained(): Explanation {
  const last = explained.at(-1);
  if (last === undefined) throw new Error('nothing was explained');
  return last;
}

/** Explains each request before it is checked. */
@Injectable()
export class ExplainingGuard implements CanActivate {
  constructor(private readonly limiters: LimiterService) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    explained.push(await this.limiters.explain(context));
    return true;
  }
}

/** Binds it in front of the guard that checks, for apps with the option `guard: 'custom'`. */
export const explainFirst: Provider[] = [
  { provide: APP_GUARD, useClass: ExplainingGuard },
  { provide: APP_GUARD, useExisting: RateLimitGuard },
];
