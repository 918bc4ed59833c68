import type { Algorithm, Parameters } from '../algorithms/algorithm.js';

/** A share of a quota in whole units, rounded up without floating-point error: 0.55 of 100 is 55. */
export function unitsOf(share: number, quota: number): number {
  return Math.min(quota, Math.ceil(Number((share * quota).toPrecision(12))));
}

/** The parameters with another quota. */
export function withQuota(algorithm: Algorithm, parameters: Parameters, quota: number): Parameters {
  return algorithm.withQuota?.(parameters, quota) ?? { ...parameters, quota };
}
