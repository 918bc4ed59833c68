import { declare } from '../../app/rules/declared-metadata.js';

/**
 * Exempts a route or a controller from limits that are declared farther out: from those with the given names, or from all. Limits
 * that the same place or a nearer one declares with `@RateLimit` still apply.
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
