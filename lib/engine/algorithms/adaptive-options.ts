import { readOptions, wholeNumber, wrongOption } from '../options/check-options.js';
import { fraction, number, object, time, whole } from '../options/kinds.js';
import type { OptionRows } from '../options/option-row.js';
import type { Duration } from '../options/values.js';
import type { Parameters } from './algorithm.js';

/** The share of the limit up to which requests of each priority are let in; `'critical'` requests may use all of it. */
export interface AdaptiveShares {
  /**
   * For `'sheddable'` requests, which are rejected first: more than 0, at most the share of `'default'`.
   * @default 0.6
   */
  sheddable?: number | undefined;
  /**
   * For requests that are neither `'critical'` nor `'sheddable'`: more than 0, at most 1.
   * @default 0.9
   */
  default?: number | undefined;
}

/**
 * Adaptive concurrency: a request of cost c is let in if the units in flight + c <= the limit's share of its priority. The limit is learned
 * from the duration of requests. With latency L, latency without load B, throughput X, in each window:
 *
 * - L > tolerance * B: limit += smoothing * (max(limit * max(1/2, tolerance * B / L), X*B + 2 * sqrt(X*B)) - limit)
 * - else, and if at least half of the limit was used: limit += sqrt(limit) * (tolerance - L/B) / (tolerance - 1); until the first
 *   queue, half of the limit in place of its square root
 *
 * The gradient B / L is that of Netflix's concurrency-limits (`Gradient2Limit`), the bound X * B that of BBR (Cardwell et al., ACM Queue
 * 2016; Alibaba's Sentinel counts it as `minRt * maxQps`), the lower concurrency for measuring B again is BBR's ProbeRTT.
 */
export interface AdaptiveOptions {
  /** The algorithm. */
  algo: 'adaptive';
  /**
   * The minimum limit, in units: a whole number >= 1.
   * @default 2
   */
  min?: number | undefined;
  /**
   * The maximum limit, in units: a whole number >= `min`.
   * @default 1000
   */
  max?: number | undefined;
  /**
   * The limit before it has learned anything: a whole number from `min` to `max`.
   * @default 20, or the nearest of `min` and `max`
   */
  initial?: number | undefined;
  /**
   * The factor by which requests may take longer than without load before the limit decreases: a number > 1, at most 10.
   * @default 1.5
   */
  tolerance?: number | undefined;
  /**
   * The share of the way to a lower limit that one window goes: more than 0, at most 1.
   * @default 0.5
   */
  smoothing?: number | undefined;
  /**
   * The interval at which the limit is adjusted, if at least 10 requests have ended: milliseconds or a duration.
   * @default '500ms'
   */
  window?: Duration | undefined;
  /**
   * The time for which the measured latency without load is trusted while the limit is in use: milliseconds or a duration. After that,
   * fewer requests are let in for a moment to measure it again.
   * @default '30s'
   */
  probeEvery?: Duration | undefined;
  /**
   * The time for which a request counts as in flight: milliseconds or a duration. A request that takes longer is treated as a stream, or as
   * one that never ends.
   * @default '10s'
   */
  ttl?: Duration | undefined;
  /**
   * The delay of the event loop above which the limit does not grow: milliseconds or a duration. Any delay of the event loop counts as
   * latency, and as requests that wait for it.
   * @default '100ms'
   */
  eventLoopDelay?: Duration | undefined;
  /**
   * The share of its processors above which the limit does not grow while the process uses more: more than 0, at most 1.
   * @default 0.9
   */
  cpu?: number | undefined;
  /** The shares of the limit for requests of each priority. */
  shares?: AdaptiveShares | undefined;
  /**
   * The HTTP status of a rejection: a whole number from 400 to 599.
   * @default 503
   */
  status?: number | undefined;
}

/** Times are microseconds. */
export interface AdaptiveParameters extends Parameters {
  readonly min: number;
  readonly initial: number;
  readonly tolerance: number;
  readonly smoothing: number;
  readonly window: number;
  readonly probeEvery: number;
  readonly ttl: number;
  readonly eventLoopDelay: number;
  readonly cpu: number;
  readonly shares: Readonly<Record<'critical' | 'default' | 'sheddable', number>>;
  readonly status: number;
}

const INITIAL = 20;
const MAX = 1000;
/** The maximum number of units in flight, so that a counter stays small. */
const MOST = 1_000_000;

const counted = whole(1, MOST);

const SHARES = {
  sheddable: {
    kind: fraction,
    text: "The share of the limit that requests of priority 'sheddable' may use.",
    usual: '0.6',
  },
  default: {
    kind: fraction,
    text: "The share of the limit that requests of priority 'default' may use.",
    usual: '0.9',
  },
} as const satisfies OptionRows;

export const adaptiveOptions = {
  min: { kind: counted, text: 'The minimum of the limit.', usual: '2' },
  max: { kind: counted, text: 'The maximum of the limit.', usual: '1000' },
  initial: { kind: counted, text: 'The limit before anything is learned.', usual: '20' },
  tolerance: {
    kind: number('a number > 1 and <= 10', { exclusiveMinimum: 1, maximum: 10 }),
    text: 'The limit falls if requests take more than this multiple of the latency without load.',
    default: 1.5,
  },
  smoothing: {
    kind: fraction,
    text: 'The part of a decrease that one window applies.',
    default: 0.5,
  },
  window: { kind: time, text: 'How often the limit is adjusted.', default: '500ms' },
  probeEvery: {
    kind: time,
    text: 'How long the latency without load stays valid under load.',
    default: '30s',
    isLong: true,
  },
  ttl: { kind: time, text: 'How long a request counts as in flight.', default: '10s', isLong: true },
  eventLoopDelay: {
    kind: time,
    text: 'The limit does not grow while the event loop lags by more than this.',
    default: '100ms',
  },
  cpu: {
    kind: fraction,
    text: 'The limit does not grow while the process uses more than this share of its processors.',
    default: 0.9,
  },
  shares: {
    kind: object('{ sheddable, default } of numbers > 0 and <= 1, such as { sheddable: 0.6, default: 0.9 }', SHARES, {
      mayBeEmpty: true,
    }),
    text: 'The shares of the limit that sheddable and default requests may use.',
    usual: '0.6 and 0.9',
  },
  status: { kind: whole(400, 599), text: 'The HTTP status of its rejections.', default: 503 },
} as const satisfies OptionRows;

/** Reads the options. Throws `RateLimitConfigError`. */
export function adaptiveParameters(options: AdaptiveOptions, location: string): AdaptiveParameters {
  const read = readOptions(location, options, adaptiveOptions);
  const min = read.min ?? Math.min(2, read.max ?? MAX);
  const max = wholeNumber(location, 'max', read.max ?? Math.max(MAX, min), { min, max: MOST });
  const initial = read.initial ?? Math.min(Math.max(INITIAL, min), max);
  return {
    ...read,
    quota: max,
    min,
    initial: wholeNumber(location, 'initial', initial, { min, max }),
    shares: readShares(options.shares, location),
  };
}

function readShares(given: AdaptiveShares = {}, location: string): AdaptiveParameters['shares'] {
  const { default: usual = 0.9, sheddable = Math.min(0.6, usual) } = given;
  if (sheddable > usual) {
    const expected = `a number > 0 and <= ${usual}, the share of default`;
    throw wrongOption(`${location}.shares`, 'sheddable', sheddable, expected);
  }
  return { critical: 1, default: usual, sheddable };
}
