import { declare } from '../../app/rules/declared-metadata.js';

/**
 * Exempts a route or a controller from inherited limits: those of the module and, for a route, of its controller. Without names, it skips
 * all of them. Limits that `@RateLimit` declares in the same place, or closer to the handler, still apply.
 *
 * @example
 * ```ts
 * @SkipRateLimit('hourly')
 * ```
 */
export function SkipRateLimit(...names: string[]): ClassDecorator & MethodDecorator {
  return declare(({ specs, skips }) => ({
    specs,
    skips: names.length === 0 || skips === 'all' ? 'all' : [...names, ...skips],
  }));
}
