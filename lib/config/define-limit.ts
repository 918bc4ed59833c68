import type { LimitDefinition } from './limit-definition.js';

/**
 * Gives a limit back as it is. It lets TypeScript find options that are misspelt, which it does not look for in what a function
 * returns, and keeps the type where a limit is written apart from where it is used.
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
 * The same of several limits by their names, as `define` and `forFeature` take them.
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
