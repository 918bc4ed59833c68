import { Inject } from '@nestjs/common';
import { getLimiterToken, recordInjection } from '../../app/config/limiter-tokens.js';

/**
 * Injects the `Limiter` of a defined limit.
 *
 * @example
 * ```ts
 * constructor(@InjectLimiter('login') private readonly logins: Limiter) {}
 * ```
 */
export function InjectLimiter(name: string): PropertyDecorator & ParameterDecorator {
  const inject = Inject(getLimiterToken(name));
  return (target: object, key?: string | symbol, index?: number) => {
    const host = typeof target === 'function' ? target : target.constructor;
    recordInjection(host, name);
    // Without an index, Nest injects a property; its type lacks that case.
    inject(target, key, index as number);
  };
}
