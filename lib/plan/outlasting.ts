import type { LimitDefinition, LimitSpec } from '../limit-definition.js';
import type { RateLimitModuleOptions } from '../rate-limit.options.js';

/** What any `@RateLimit` declares, and any `forFeature` defines, in this process. */
const recorded = new Set<LimitSpec>();

/** Remembers what is declared somewhere. */
export function record(specs: Iterable<LimitSpec>): void {
  for (const spec of specs) recorded.add(spec);
}

/**
 * Whether any limit of an app may matter after the guards, so that an interceptor has to see its requests: most apps have none,
 * and Nest takes longer for a request that an interceptor sees than all limits do.
 */
export function anyOutlasts({ limits, define }: RateLimitModuleOptions): boolean {
  // What is wrong with them is told at start-up.
  const everywhere: readonly LimitSpec[] = Array.isArray(limits) ? limits : [];
  return [...everywhere, ...Object.values(define ?? {}), ...recorded].some(outlasts);
}

/** A function may give any limit. A name is that of a definition, which is looked at itself. */
function outlasts(spec: LimitSpec): boolean {
  if (typeof spec !== 'object' || spec === null) return typeof spec === 'function';
  const { algo, count = 'all', key, phase }: LimitDefinition = spec;
  return algo === 'concurrency' || count !== 'all' || key === 'user' || phase === 'authenticated';
}
