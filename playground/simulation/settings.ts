import { algorithms, type AlgorithmOptions } from '../../lib/engine/algorithms/index.js';
import { oneOf, wholeNumber } from '../../lib/engine/options/check-options.js';

/** The algorithms that can be compared, in the order in which they are shown. */
export const ALGORITHMS = [
  'fixed-window',
  'calendar-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
  'gcra',
  'leaky-bucket',
  'concurrency',
  'budget',
] as const satisfies readonly AlgorithmOptions['algo'][];

export type AlgorithmName = (typeof ALGORITHMS)[number];

/** The intervals, each with the calendar's window of the same length, and its microseconds. */
export const INTERVALS = {
  '1s': { period: 'second', micros: 1e6 },
  '1m': { period: 'minute', micros: 60e6 },
  '1h': { period: 'hour', micros: 3600e6 },
  '1d': { period: 'day', micros: 86_400e6 },
} as const;

export type Interval = keyof typeof INTERVALS;

/** What all algorithms of a comparison allow. */
export interface Settings {
  /** Units an interval. */
  readonly rate: number;
  readonly interval: Interval;
  /** Units at once after a pause: `token-bucket` and `gcra`. */
  readonly burst: number;
  /** Units that may wait: `leaky-bucket`. */
  readonly queue: number;
  /** Into how many slices the window is cut: `sliding-window`. */
  readonly slices: number;
  /** Units that may be held at once: `concurrency`. */
  readonly limit: number;
  /** For how much of an interval each request is held, in percent: `concurrency`, and `budget`, which settles it then. */
  readonly hold: number;
  /** Units that a request, which uses one, reserves: `budget`. */
  readonly estimate: number;
}

/** The largest values of the settings that are numbers; a comparison of more could not be drawn. */
export const MOST = { rate: 100, burst: 200, queue: 200, slices: 100, limit: 50, hold: 100, estimate: 10 } as const;

/** Reads settings, some of which may be left out. Throws `RateLimitConfigError`. */
export function readSettings(given: Partial<Record<keyof Settings, unknown>>, location: string): Settings {
  const number = (option: keyof typeof MOST, fallback: number, min = 1) =>
    wholeNumber(location, option, given[option] ?? fallback, { min, max: MOST[option] });
  const rate = number('rate', 10);
  return {
    rate,
    interval: oneOf(location, 'interval', given.interval ?? '1m', Object.keys(INTERVALS) as Interval[]),
    burst: number('burst', rate),
    queue: number('queue', rate, 0),
    slices: number('slices', 10),
    limit: number('limit', 3),
    hold: number('hold', 20),
    estimate: number('estimate', 2),
  };
}

/** Reads a list of algorithms, separated by commas: all of them if it is left out. Throws `RateLimitConfigError`. */
export function readAlgorithms(given: string | undefined, location: string): AlgorithmName[] {
  if (given === undefined) return [...ALGORITHMS];
  const names = given.split(',').map((name) => oneOf(location, 'algorithms', name.trim(), ALGORITHMS));
  return ALGORITHMS.filter((name) => names.includes(name));
}

/** The options of a limit of one algorithm. */
export function optionsOf(algo: AlgorithmName, settings: Settings): AlgorithmOptions {
  const { rate, interval, burst, queue, slices, limit } = settings;
  switch (algo) {
    case 'calendar-window':
      return { algo, rate, period: INTERVALS[interval].period };
    case 'sliding-window':
      return { algo, rate, interval, slices };
    case 'token-bucket':
    case 'gcra':
      return { algo, rate, interval, burst };
    case 'leaky-bucket':
      return { algo, rate, interval, queue };
    case 'concurrency':
      return { algo, limit, ttl: interval };
    case 'budget':
      return { algo, limit: rate, period: INTERVALS[interval].period };
    default:
      return { algo, rate, interval };
  }
}

/** What a request asks for: one unit, or what it may use at most. A limit of fewer could let none pass. */
export function costOf(algo: AlgorithmName, { rate, estimate }: Settings): number {
  return algo === 'budget' ? Math.min(rate, estimate) : 1;
}

/** The most units that can pass in any stretch of one interval, whatever the traffic; nothing if there is no such number. */
export function mostInAnInterval(algo: AlgorithmName, { rate, burst }: Settings): number | undefined {
  switch (algo) {
    // Its window opens with a request, which lies a whole interval before the next window.
    case 'fixed-window':
      return 2 * rate - 1;
    case 'calendar-window':
    case 'budget':
      return 2 * rate;
    // The burst, and what flows in before a whole interval is over.
    case 'token-bucket':
    case 'gcra':
      return burst + rate - 1;
    case 'concurrency':
      return undefined;
    default:
      return rate;
  }
}

/** The settings that change what an algorithm does, besides the rate and the interval. */
export function ownSettings(algo: AlgorithmName): (keyof Settings)[] {
  const own = algorithms.get(algo)?.options ?? {};
  // The limit of a budget is the rate.
  if (algo === 'budget') return ['estimate', 'hold'];
  const named = (['burst', 'queue', 'slices', 'limit'] as const).filter((option) => Object.hasOwn(own, option));
  return algo === 'concurrency' ? [...named, 'hold'] : named;
}
