import type { AlgorithmOptions } from '../algorithms/index.js';
import { duration, MAX_INTERVAL_MS } from '../algorithms/options.js';

/**
 * A part of a limit's rate and quota, at least one unit. Where less than one unit is left of a rate, one is allowed in a longer
 * interval.
 */
export function shareOf(options: AlgorithmOptions, part: number): AlgorithmOptions {
  const units = (count: number | undefined) => count && Math.max(1, wholeShare(count, part));
  if (options.algo === 'concurrency') return { ...options, limit: units(options.limit)! };
  const rate = units(options.rate)!;
  if (options.algo === 'calendar-window') return { ...options, rate };
  const micros = duration('localShare', 'interval', options.interval);
  const longer = Math.min(MAX_INTERVAL_MS, (micros / 1000) * Math.max(1, rate / (options.rate * part)));
  const interval = rate > 1 ? options.interval : longer;
  switch (options.algo) {
    case 'gcra':
    case 'token-bucket':
      return { ...options, rate, interval, burst: units(options.burst ?? options.rate)! };
    case 'leaky-bucket':
      return { ...options, rate, interval, queue: wholeShare(options.queue ?? options.rate, part) };
    default:
      return { ...options, rate, interval };
  }
}

/** Whole units, without what a product of fractions lacks: 0.29 of 100 is 29. */
function wholeShare(count: number, part: number): number {
  return Math.floor(Number((count * part).toPrecision(15)));
}
