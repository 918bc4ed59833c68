import { duration } from '../options/check-options.js';
import { type Duration, MAX_INTERVAL_MS, showDuration } from '../options/values.js';
import type { Algorithm, Parameters } from './algorithm.js';

/** A part of a number of units, rounded down without floating-point error: 0.29 of 100 is 29. */
export function wholeShare(count: number, part: number): number {
  return Math.floor(Number((count * part).toPrecision(15)));
}

/** A part of a number of units, at least one. */
export function shareOfUnits(count: number, part: number): number {
  return Math.max(1, wholeShare(count, part));
}

/**
 * A part of a rate, at least one unit per interval. If less than one unit remains, one unit is allowed per longer interval, at most a year.
 */
export function shareOfRate<O extends { rate: number; interval: Duration }>(options: O, part: number): O {
  const rate = shareOfUnits(options.rate, part);
  if (rate > 1) return { ...options, rate };
  const micros = duration('localShare', 'interval', options.interval);
  const longer = (micros / 1000) * Math.max(1, rate / (options.rate * part));
  return { ...options, rate, interval: Math.min(MAX_INTERVAL_MS, longer) };
}

/** The default name of a limit with a rate, such as `gcra:20/1s`. */
export function nameOfRate({ algo, rate, interval }: { algo: string; rate: number; interval: Duration }): string {
  return `${algo}:${rate}/${showDuration(interval)}`;
}

/** The common part of algorithms with a window of an interval. */
export const ofInterval = {
  defaultName: nameOfRate,
  share: shareOfRate,
  window: ({ interval }: { readonly interval: number }): number => interval,
};

/** A part of a rate, and of the units that it allows at once. */
export function shareOfBurst<O extends { rate: number; interval: Duration; burst?: number | undefined }>(
  options: O,
  part: number,
): O {
  return { ...shareOfRate(options, part), burst: shareOfUnits(options.burst ?? options.rate, part) };
}

/** A share of a quota in whole units, rounded up without floating-point error: 0.55 of 100 is 55. */
export function unitsOf(share: number, quota: number): number {
  return Math.min(quota, Math.ceil(Number((share * quota).toPrecision(12))));
}

/** The parameters with another quota. */
export function withQuota(algorithm: Algorithm, parameters: Parameters, quota: number): Parameters {
  return algorithm.withQuota?.(parameters, quota) ?? { ...parameters, quota };
}
