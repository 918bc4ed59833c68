import { number, object, time } from '../../options/kinds.js';
import type { OptionRows } from '../../options/option-row.js';
import type { Duration } from '../../options/values.js';
import { configError } from '../../errors/errors.js';
import { readOptions } from '../../options/check-options.js';
import { gcd, type Scale } from '../scale.js';
import { show } from '../../errors/wording.js';

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
  for: { kind: time, text: 'How long it takes to warm up, and to cool down.', required: true, isLong: true },
  from: {
    kind: number(`a number >= ${LEAST} and < 1`, { minimum: LEAST, exclusiveMaximum: 1 }),
    text: 'The share of its rate that a cold limit allows.',
    required: true,
  },
} as const satisfies OptionRows;

export const warmUpOptions = {
  warmUp: {
    kind: object("{ for, from } such as { for: '5m', from: 0.3 }", rampOptions),
    text: 'Lets a cold limit allow only a share of its rate, which rises to the full rate with use.',
    excludes: [{ option: 'refill', value: 'intervally' }],
  },
} as const satisfies OptionRows;

const tooLong = (location: string, received: unknown) =>
  `${location}.for: a warm-up of ${show(received)} cannot be counted in whole numbers with this rate. Make it shorter, or use a 'rate' and an 'interval' that divide each other`;

/**
 * A ramp in whole numbers: the warming-up limiter of Guava (`SmoothWarmingUp`). With k = 1 / from, a unit of a cold limit takes k times as
 * long as one of a warm limit, whose units are T apart. Coldness goes from 0 to `cold`. It grows by `rest` per idle tick, and takes `for`
 * to grow from 0 to `cold`; a unit reduces it by `use`. Until the coldness has dropped to `warm`, the time of a unit decreases linearly to
 * T, which takes `for` if the limit is fully used. Then it stays at T until the coldness is used up, which takes half as long with k = 3.
 */
export interface Ramp {
  readonly rest: number;
  readonly use: number;
  readonly warm: number;
  readonly cold: number;
  /** The additional weight of the units that bring the coldness from `cold` to `warm`, compared to units of a warm limit. */
  readonly extra: number;
}

const LARGEST_DENOMINATOR = 1000;
/** The maximum that may be counted. Twice as much can be owed, and more while units are reserved. */
const MAX = Number.MAX_SAFE_INTEGER / 4;

/** Reads a limit's `warmUp`. */
export function rampOf(given: WarmUpOptions, { unit, speed, tick }: Scale, quota: number, location: string): Ramp {
  const within = `${location}.warmUp`;
  const { for: length, from } = readOptions(within, given, rampOptions);
  const ticks = Math.ceil(length / tick);
  const [part, whole] = fractionOf(from);
  // k = whole / part. From cold to warm 2 x for / (T + k x T) units pass; to the end, for / (2 x T) more.
  const rest = speed * (5 * part + whole);
  const use = unit * 2 * (part + whole);
  const warm = speed * (part + whole);
  if (rest > MAX || use > MAX) throw configError('SLUICE_INEXACT_RATE', tooLong(within, given.for));
  const divisor = gcd(gcd(rest, use), warm);
  const ramp = {
    rest: rest / divisor,
    use: use / divisor,
    warm: ticks * (warm / divisor),
    cold: ticks * (rest / divisor),
    extra: Math.floor((ticks * speed * (whole - part)) / (whole + part)),
  };
  if (ramp.cold > MAX || quota * ramp.use > MAX || ticks * speed * whole > MAX || quota * unit > MAX) {
    throw configError('SLUICE_INEXACT_RATE', tooLong(within, given.for));
  }
  return ramp;
}

/** The additional weight of the units that use up this coldness, compared to units of a warm limit. */
export function extraWeight({ warm, cold, extra }: Ramp, coldness: number): number {
  if (coldness <= warm) return 0;
  const part = (coldness - warm) / (cold - warm);
  return Math.floor(part * part * extra + 0.5);
}

/** A share as a fraction of small whole numbers. */
function fractionOf(from: number): [part: number, whole: number] {
  for (let whole = 2; whole < LARGEST_DENOMINATOR; whole++) {
    const part = Math.round(from * whole);
    if (part > 0 && part < whole && Math.abs(part / whole - from) < 1e-12) return [part, whole];
  }
  return [Math.min(Math.round(from * LARGEST_DENOMINATOR), LARGEST_DENOMINATOR - 1), LARGEST_DENOMINATOR];
}
