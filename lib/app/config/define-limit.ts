import type { LimitDefinition } from './limit-definition.js';

/**
 * Returns the limit unchanged. Use it to declare a limit away from where it is used: TypeScript then reports misspelled options, which it
 * does not check in the return value of a function, and keeps the exact type.
 *
 * @example
 * ```ts
 * const plans = { free: defineLimit({ name: 'plan', algo: 'gcra', rate: 1, interval: '1s' }) };
 * ```
 */
export function defineLimit(limit: LimitDefinition): LimitDefinition {
  return limit;
}

/**
 * Returns several limits by name unchanged, in the form that `define` and `forFeature` take; see `defineLimit`.
 *
 * @example
 * ```ts
 * useFactory: () => ({ define: defineLimits({ login: { algo: 'sliding-log', rate: 5, interval: '15m' } }) })
 * ```
 */
export function defineLimits<Name extends string>(
  limits: Readonly<Record<Name, LimitDefinition>>,
): Readonly<Record<Name, LimitDefinition>> {
  return limits;
}
