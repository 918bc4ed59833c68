import { orElse } from '../algorithms/options.js';
import type { CommonLimitOptions } from '../config/common-limit-options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { replicaMessages } from '../errors/messages/replica.js';
import { check } from './option-checks.js';

/** No server has more. */
export const MOST_REPLICAS = 100;

/** Reads a limit's `replicas`; 0 for none. Throws `RateLimitConfigError`. */
export function replicaTerms({ replicas, prefetch, scope }: CommonLimitOptions, location: string): number {
  check(location, 'replicas', replicas, replicaMessages.wants(), isCount);
  if (replicas === undefined) return 0;
  // What is decided in process reaches no replica before it is told.
  if (prefetch !== undefined) throw new RateLimitConfigError(replicaMessages.replicasWith(location, "'prefetch'"));
  if (orElse(scope, 'cluster') === 'instance') {
    throw new RateLimitConfigError(replicaMessages.replicasWith(location, "scope: 'instance'"));
  }
  return replicas;
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_REPLICAS;
}
