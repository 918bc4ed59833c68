import type { AlgorithmName, AlgorithmOptions } from '../../../engine/algorithms/index.js';
import { CompiledLimit } from '../../../engine/limits/compiled-limit.js';

/** The quota of every limit of the suite. */
export const QUOTA = 5;
/** Long, so that what comes back while a slow store answers changes nothing. */
const LONG = '30d';

/** How the suite writes a limit of each algorithm, with how long a window takes where that can be chosen. */
const OPTIONS: Partial<Record<AlgorithmName, (interval: string) => AlgorithmOptions>> = {
  'fixed-window': (interval) => ({ algo: 'fixed-window', rate: QUOTA, interval }),
  'sliding-window': (interval) => ({ algo: 'sliding-window', rate: QUOTA, interval }),
  'sliding-log': (interval) => ({ algo: 'sliding-log', rate: QUOTA, interval }),
  'token-bucket': (interval) => ({ algo: 'token-bucket', rate: QUOTA, interval }),
  gcra: (interval) => ({ algo: 'gcra', rate: QUOTA, interval }),
  'leaky-bucket': (interval) => ({ algo: 'leaky-bucket', rate: QUOTA, interval, queue: QUOTA - 1 }),
  'calendar-window': () => ({ algo: 'calendar-window', rate: QUOTA, period: 'year' }),
  budget: () => ({ algo: 'budget', limit: QUOTA, period: 'year' }),
  concurrency: (ttl) => ({ algo: 'concurrency', limit: QUOTA, ttl }),
};

/** The algorithms that count for several instances: `adaptive` never does. */
export const ALGORITHMS = Object.keys(OPTIONS) as AlgorithmName[];
/** Those of which a whole quota is there again after an interval that the suite chooses. */
export const REFILLED: readonly AlgorithmName[] = [
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'token-bucket',
  'gcra',
];

/** A limit of 5 units. */
export function limitOf(algo: AlgorithmName, name: string, interval = LONG, settings: object = {}): CompiledLimit {
  return new CompiledLimit(OPTIONS[algo]!(interval), { location: 'storeConformance', name, ...settings });
}
