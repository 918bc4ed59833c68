import type { AlgorithmOptions, WarmUpOptions } from '../../../lib/index.js';
import { microsOf } from './models.js';

/** Options of what warms up. */
export type WarmingOptions = Extract<AlgorithmOptions, { algo: 'gcra' | 'token-bucket' }> & {
  burst: number;
  warmUp: WarmUpOptions;
};

/** What is nearer to a whole unit than this may be either, by rounding. */
const UNSURE = 0.02;

interface Told {
  readonly allowed: boolean;
  readonly remaining: number;
}

/**
 * The limit as the documentation of Guava's `SmoothWarmingUp` tells it, in fractions: stored permits, which grow while nothing is
 * owed, and of which each has a price. It is told what was decided, and says what should have been; nothing where that hangs on rounding.
 */
export function warmUpModel({ rate, interval, burst, warmUp }: WarmingOptions) {
  const stable = Number(microsOf(interval)) / rate;
  const period = Number(microsOf(warmUp.for));
  const cold = stable / warmUp.from;
  const threshold = (0.5 * period) / stable;
  const most = threshold + (2 * period) / (stable + cold);
  const slope = (cold - stable) / (most - threshold);
  let stored = most;
  let owed = 0;
  let last = 0;
  const priceAt = (permits: number) => stable + Math.max(0, permits - threshold) * slope;
  /** The prices of stored permits, above the threshold by the mean of the first and the last one. */
  const priceOf = (units: number) => {
    const left = Math.max(0, stored - units);
    const sloping = Math.max(0, stored - Math.max(left, threshold));
    return sloping * ((priceAt(stored) + priceAt(stored - sloping)) / 2) + (units - sloping) * stable;
  };
  return (now: number, cost: number, allowed: boolean): Told | undefined => {
    const idle = now - last - owed;
    owed = Math.max(0, -idle);
    if (idle > 0) stored = Math.min(most, stored + (idle * most) / period);
    last = now;
    const room = burst - owed / stable;
    if (allowed) {
      owed += priceOf(cost);
      stored = Math.max(0, stored - cost);
    }
    const left = burst - owed / stable;
    if (Math.abs(room - cost) < UNSURE || Math.abs(left - Math.round(left)) < UNSURE) return undefined;
    return { allowed: cost <= room, remaining: Math.max(0, Math.floor(left)) };
  };
}
