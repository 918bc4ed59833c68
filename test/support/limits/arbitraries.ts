import fc from 'fast-check';
import type { Priority } from '../../../lib/index.js';
import { CompiledLimit } from '../../../lib/testing/store/index.js';
import { featuresOfOptions } from '../../../lib/storage/features/index.js';
import type { SharedAlgorithmOptions } from '../../../lib/engine/algorithms/index.js';
import { PERIODS } from '../../../lib/engine/algorithms/calendar.js';
import { MAX_INTERVAL_MS } from '../../../lib/engine/options/values.js';
import type { Escalation } from '../../../lib/engine/limits/limit-settings.js';

const rate = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 5000 }));
const interval = fc.oneof(
  fc.integer({ min: 1, max: 50 }),
  fc.integer({ min: 1, max: 100_000 }),
  fc.constantFrom(0.007, 0.5, '1s', '10s', '1m', '1h', '1d', '30d', '1y'),
);
const units = fc.integer({ min: 1, max: 30 });

/** The algorithms that count units an interval: all but those that count what is held, and `budget`, of a `limit`. */
export type RateOptions = Exclude<SharedAlgorithmOptions, { algo: 'concurrency' | 'budget' }>;

/** Random options of `concurrency`. */
export const concurrencyOptions = fc.record({
  algo: fc.constant('concurrency' as const),
  limit: units,
  ttl: interval,
});

/** Random options of `budget`. */
export const budgetOptions = fc.record(
  {
    algo: fc.constant('budget' as const),
    limit: rate,
    period: fc.constantFrom(...PERIODS),
    timezone: fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe'),
    retain: fc.constantFrom('1m', '2h'),
    hold: interval,
    onLapse: fc.constantFrom('charge' as const, 'release' as const),
  },
  { requiredKeys: ['algo', 'limit', 'period'] },
);

/** Random options of each algorithm that counts units an interval. */
export const optionsOf = {
  'fixed-window': fc.record({ algo: fc.constant('fixed-window' as const), rate, interval }),
  'calendar-window': fc.record(
    {
      algo: fc.constant('calendar-window' as const),
      rate,
      period: fc.constantFrom(...PERIODS),
      timezone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu'),
    },
    { requiredKeys: ['algo', 'rate', 'period'] },
  ),
  'sliding-window': fc.record(
    { algo: fc.constant('sliding-window' as const), rate, interval, slices: fc.integer({ min: 1, max: 15 }) },
    { requiredKeys: ['algo', 'rate', 'interval'] },
  ),
  'sliding-log': fc.record({ algo: fc.constant('sliding-log' as const), rate, interval }),
  'token-bucket': fc.record(
    {
      algo: fc.constant('token-bucket' as const),
      rate,
      interval,
      burst: units,
      refill: fc.constantFrom('greedy' as const, 'intervally' as const),
    },
    { requiredKeys: ['algo', 'rate', 'interval'] },
  ),
  'leaky-bucket': fc.record(
    { algo: fc.constant('leaky-bucket' as const), rate, interval, queue: fc.integer({ min: 0, max: 30 }) },
    { requiredKeys: ['algo', 'rate', 'interval'] },
  ),
  gcra: fc.record(
    { algo: fc.constant('gcra' as const), rate, interval, burst: units },
    { requiredKeys: ['algo', 'rate', 'interval'] },
  ),
} satisfies Record<string, fc.Arbitrary<unknown>>;

export const algorithmNames = Object.keys(optionsOf) as (keyof typeof optionsOf)[];

/** Random options of limits that warm up. */
export const warmingOptions = fc.record(
  {
    algo: fc.constantFrom('token-bucket' as const, 'gcra' as const),
    rate: fc.integer({ min: 1, max: 50 }),
    interval: fc.constantFrom('1s', '10s', '1m', 777),
    burst: units,
    warmUp: fc.record({
      for: fc.oneof(fc.integer({ min: 1, max: 5000 }), fc.constantFrom('1m', '5m')),
      // A share is counted as a fraction of thousandths or simpler.
      from: fc.oneof(
        fc.constantFrom(1 / 3, 0.1, 0.3, 0.5),
        fc.integer({ min: 1, max: 999 }).map((part) => part / 1000),
      ),
    }),
  },
  { requiredKeys: ['algo', 'rate', 'interval', 'warmUp'] },
);

/** Of limits that allow their whole quota at any time, one unit after another. */
export const steadyOptions = fc.oneof(
  ...Object.values(optionsOf),
  concurrencyOptions,
) as fc.Arbitrary<SharedAlgorithmOptions>;

export const anyOptions = fc.oneof(
  { weight: 8, arbitrary: steadyOptions },
  { weight: 1, arbitrary: warmingOptions },
) as fc.Arbitrary<SharedAlgorithmOptions>;

/** Blocks as shares of the limit's window: none, of one length, or with steps. */
export const anyBlocks = fc.oneof(
  fc.constant({}),
  fc.record({ blockFor: fc.double({ min: 0.001, max: 3, noNaN: true }), strikes: fc.boolean() }),
  fc.record({
    strikes: fc.boolean(),
    steps: fc.array(fc.double({ min: 0.001, max: 3, noNaN: true }), { minLength: 1, maxLength: 4 }),
    forgetAfter: fc.double({ min: 0.001, max: 3, noNaN: true }),
  }),
) as fc.Arbitrary<AnyBlocks>;

export interface AnyBlocks {
  /** Whether tries during a block prolong it. */
  strikes?: boolean;
  blockFor?: number;
  steps?: number[];
  forgetAfter?: number;
}

const LONGEST_BLOCK = MAX_INTERVAL_MS * 1000;

/** The settings of a limit with such blocks. */
export function blocksOf(
  options: SharedAlgorithmOptions,
  { blockFor = 0, strikes, steps, forgetAfter = 0 }: AnyBlocks,
) {
  const window = new CompiledLimit(options, { location: 'test', featuresOfOptions }).windowMs(0) * 1000;
  const micros = (share: number) => Math.min(LONGEST_BLOCK, Math.max(1, Math.round(share * window)));
  const tries = strikes === true ? { strikes } : {};
  if (steps === undefined) return { blockFor: blockFor > 0 ? micros(blockFor) : 0, ...tries };
  const escalation: Escalation = {
    steps: steps.toSorted((one, other) => one - other).map(micros),
    forgetAfter: micros(forgetAfter),
  };
  return { escalation, ...tries };
}

/** The priority of a request. */
export const anyPriority = fc.constantFrom<Priority>('critical', 'default', 'sheddable');

/** How far the clock goes, as a share of the limit's window: mostly forward, now and then back, now and then far. */
export const clockStep = fc.oneof(
  { weight: 6, arbitrary: fc.double({ min: 0, max: 0.3, noNaN: true }) },
  { weight: 3, arbitrary: fc.double({ min: 0, max: 2, noNaN: true }) },
  { weight: 1, arbitrary: fc.double({ min: -0.9, max: 0, noNaN: true }) },
  { weight: 1, arbitrary: fc.double({ min: -40, max: 40, noNaN: true }) },
);

/** How far the clock goes if it only goes forward. */
export const forwardStep = fc.oneof(
  { weight: 6, arbitrary: fc.double({ min: 0, max: 0.3, noNaN: true }) },
  { weight: 2, arbitrary: fc.double({ min: 0, max: 2, noNaN: true }) },
);

/** A cost as a share of the quota; most are small, some are more than ever fits. */
export const costShare = fc.oneof(
  { weight: 5, arbitrary: fc.constant(0) },
  { weight: 4, arbitrary: fc.double({ min: 0, max: 0.6, noNaN: true }) },
  { weight: 1, arbitrary: fc.double({ min: 0, max: 1.2, noNaN: true }) },
);

const NOTHING = -1;

/** The same, of what may cost nothing, too. */
export const costShareOrNothing = fc.oneof(
  { weight: 6, arbitrary: costShare },
  { weight: 1, arbitrary: fc.constant(NOTHING) },
);

export function costOf(share: number, quota: number): number {
  return share === NOTHING ? 0 : Math.max(1, Math.round(share * quota));
}
