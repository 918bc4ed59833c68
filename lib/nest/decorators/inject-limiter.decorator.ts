import { Inject } from '@nestjs/common';
import { getLimiterToken, recordInjection } from '../../config/limiter-tokens.js';

/**
 * Injects the `Limiter` of a limit that is defined by name.
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
    // Nest's own decorator tells parameters from properties by the index, which its type takes for always there.
    inject(target, key, index as number);
  };
}
