import type { AlgorithmOptions } from '../../../../lib/index.js';
import { CompiledLimit } from '../../../../lib/testing/store/index.js';
import type { RateOptions } from '../../../support/limits/arbitraries.js';
import { type CarryOver, compile } from '../../../support/limits/stores.js';

export type Algo = RateOptions['algo'];

/** Rate 5 every 10 s. */
export const five: Record<Algo, AlgorithmOptions> = {
  'fixed-window': { algo: 'fixed-window', rate: 5, interval: '10s' },
  'calendar-window': { algo: 'calendar-window', rate: 5, period: 'minute' },
  'sliding-window': { algo: 'sliding-window', rate: 5, interval: '10s' },
  'sliding-log': { algo: 'sliding-log', rate: 5, interval: '10s' },
  'token-bucket': { algo: 'token-bucket', rate: 5, interval: '10s' },
  'leaky-bucket': { algo: 'leaky-bucket', rate: 5, interval: '10s', queue: 4 },
  gcra: { algo: 'gcra', rate: 5, interval: '10s' },
};

export const MINUTE = 60_000;

export const HOUR = 60 * MINUTE;

export const DAY = 24 * HOUR;

export const yes = (remaining: number, resetAfterMs: number, delayMs = 0) => ({
  allowed: true,
  remaining,
  resetAfterMs,
  delayMs,
});

export const no = (remaining: number, resetAfterMs: number, retryAfterMs: number) => ({
  allowed: false,
  remaining,
  resetAfterMs,
  retryAfterMs,
});

export const named = (options: AlgorithmOptions, name: string, shadow = false) =>
  new CompiledLimit(options, { location: 'test', name, shadow });

export const bucket = (algo: 'token-bucket' | 'gcra') => compile({ algo, rate: 7, interval: 10, burst: 100 });

export const one = (options: AlgorithmOptions) => compile(options, 'one');

export const atOnce = (rate: number, interval: string, burst = rate) =>
  one({ algo: 'token-bucket', rate, interval, burst, refill: 'intervally' });

export const aMinute = (burst: number) => one({ algo: 'token-bucket', rate: 1, interval: '1m', burst });

export const hourly = { algo: 'gcra', rate: 3, interval: '1h' } as const;

/** A limit that carries over what was left of another quota. */
export const carrying = (options: AlgorithmOptions, mode: CarryOver['mode'], quotaBefore: number) =>
  new CompiledLimit(options, { location: 'test', name: 'one', carry: { mode, quotaBefore } });

/** Five units or other so many. */
export function sized(algo: keyof typeof five, units: number): CompiledLimit {
  const options = { ...five[algo] } as Record<string, unknown>;
  if (algo === 'leaky-bucket') options['queue'] = units - 1;
  else if (algo === 'gcra' || algo === 'token-bucket') options['burst'] = units;
  else options['rate'] = units;
  return one(options as unknown as AlgorithmOptions);
}

export const fixedWindow = (interval: string) => one({ algo: 'fixed-window', rate: 1, interval });

export const slidingLog = (interval: string) => one({ algo: 'sliding-log', rate: 3, interval });

export const slidingWindow = (slices: number, interval: number | string = '10s') =>
  one({ algo: 'sliding-window', rate: 3, interval, slices });

export const tenIn = (interval: string) => one({ algo: 'sliding-window', rate: 10, interval });
