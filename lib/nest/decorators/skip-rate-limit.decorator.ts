import { declare } from '../../app/rules/declared-metadata.js';
import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';

/** Why a route or a controller is exempt from limits. */
export interface SkipReason {
  /** For readers, and for `nestjs-sluice routes`, which doesn't report the route then. */
  because: string;
}

/**
 * Exempts a route or a controller from inherited limits: those of the module and, for a route, of its controller. Without names, it skips
 * all of them. Limits that `@RateLimit` declares in the same place, or closer to the handler, still apply.
 *
 * @example
 * ```ts
 * @SkipRateLimit('hourly')
 * @SkipRateLimit({ because: 'the load balancer polls it' })
 * ```
 */
export function SkipRateLimit(
  ...namesAndReason: [...names: string[], last: string | SkipReason] | []
): ClassDecorator & MethodDecorator {
  const last = namesAndReason.at(-1);
  const hasReason = typeof last === 'object' && last !== null && 'because' in last;
  // Anything else than names is reported at start-up, when the route is known.
  const names = (hasReason ? namesAndReason.slice(0, -1) : namesAndReason) as string[];
  const because: unknown = hasReason ? last.because : undefined;
  if (hasReason && (typeof because !== 'string' || because === '')) {
    throw new RateLimitConfigError(messages.wrongReason(because));
  }
  return declare(({ specs, skips, because: before }) => ({
    specs,
    skips: names.length === 0 || skips === 'all' ? 'all' : [...names, ...skips],
    because: (because as string | undefined) ?? before,
  }));
}
