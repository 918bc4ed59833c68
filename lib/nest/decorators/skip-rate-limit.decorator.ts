import { declare } from '../../rules/declared-metadata.js';

/**
 * Exempts a route, or a controller, from limits that are declared farther out: from those with the names, or from all without
 * names. Limits that the same place or a nearer one declares with `@RateLimit` apply nevertheless.
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
