import { number, object, time } from '../../options/kinds.js';
import type { OptionRows } from '../../options/option-row.js';
import type { Duration } from '../../options/values.js';

/** The options of a warm-up. */
export interface WarmUpOptions {
  /**
   * The time that a cold limit takes to warm up while it is fully used, and a warm one to cool down while it is idle: milliseconds or a
   * duration such as `'5m'`, at most 1 year.
   */
  for: Duration;
  /**
   * The share of its rate that a cold limit allows: at least 0.001, less than 1. Rounded to a fraction of thousandths or simpler.
   */
  from: number;
}

/** The `warmUp` option of limits. */
export interface WarmingLimitOptions {
  /**
   * Warms up: a cold limit allows a share of its rate, rises to the full rate while it is used, and cools down while it is not. Adding or
   * removing the option starts new counters. Not available with `prefetch`, or with `'intervally'` as the refill of a token bucket.
   * @default no warm-up
   */
  warmUp?: WarmUpOptions | undefined;
}

/** The `warmUp` option of a token bucket, whose tokens are added evenly if it warms up. */
export type WarmingBucketOptions =
  | {
      /** Cannot be combined with refill `'intervally'`. */
      warmUp?: undefined;
    }
  | (WarmingLimitOptions & {
      /** Only `'greedy'`, if it warms up. */
      refill?: 'greedy' | undefined;
    });

const LEAST = 0.001;

export const rampOptions = {
  for: { kind: time, text: 'How long it takes to warm up, and to cool.', required: true, isLong: true },
  from: {
    kind: number(`a number >= ${LEAST} and < 1`, { minimum: LEAST, exclusiveMaximum: 1 }),
    text: 'The share of its rate that a cold limit allows.',
    required: true,
  },
} as const satisfies OptionRows;

export const warmUpOptions = {
  warmUp: {
    kind: object("{ for, from } such as { for: '5m', from: 0.3 }", rampOptions),
    text: 'Lets a cold limit allow a share of its rate, which rises to all of it while it is used.',
    excludes: [{ option: 'refill', value: 'intervally' }],
  },
} as const satisfies OptionRows;
