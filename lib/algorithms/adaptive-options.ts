import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import type { Parameters } from './algorithm.js';
import { duration, type Duration, givenOptions, wholeNumber } from './options.js';

/** The share of the limit up to which requests of each priority are let in; `'critical'` requests may use all of it. */
export interface AdaptiveShares {
  /**
   * For `'sheddable'` requests, which are refused first: more than 0, at most the share of `'default'`.
   * @default 0.6
   */
  sheddable?: number;
  /**
   * For requests that are neither `'critical'` nor `'sheddable'`: more than 0, at most 1.
   * @default 0.9
   */
  default?: number;
}

/**
 * Adaptive concurrency: a request of cost c is let in if the units in flight + c <= the limit's share of its priority. The limit is
 * learnt from how long requests take. With latency L, latency without load B, throughput X, in each window:
 *
 * - L > tolerance * B: limit += smoothing * (max(limit * max(1/2, tolerance * B / L), X*B + 2 * sqrt(X*B)) - limit)
 * - else, and if at least half of the limit was used: limit += sqrt(limit) * (tolerance - L/B) / (tolerance - 1); until the first
 *   queue, half of the limit in place of its square root
 *
 * The gradient B / L is that of Netflix's concurrency-limits (`Gradient2Limit`), the bound X * B that of BBR (Cardwell et al., ACM
 * Queue 2016; Alibaba's Sentinel counts it as `minRt * maxQps`), the lower concurrency that measures B anew is BBR's ProbeRTT.
 */
export interface AdaptiveOptions {
  /** The algorithm. */
  algo: 'adaptive';
  /**
   * The fewest units to let in: a whole number >= 1.
   * @default 2
   */
  min?: number;
  /**
   * The most units to let in: a whole number >= `min`.
   * @default 1000
   */
  max?: number;
  /**
   * The limit before anything is learnt: a whole number from `min` to `max`.
   * @default 20, or the nearest of `min` and `max`
   */
  initial?: number;
  /**
   * How many times as long as without load requests may take before the limit decreases: a number > 1, at most 10.
   * @default 1.5
   */
  tolerance?: number;
  /**
   * How much of the way to a lower limit one window goes: more than 0, at most 1.
   * @default 0.5
   */
  smoothing?: number;
  /**
   * How often the limit is adjusted, if at least 10 requests have ended: milliseconds or a duration.
   * @default '500ms'
   */
  window?: Duration;
  /**
   * How long the measured latency without load is trusted while the limit is in use: milliseconds or a duration. Then fewer
   * requests are let in for a moment to measure it again.
   * @default '30s'
   */
  probeEvery?: Duration;
  /**
   * How long a request counts as in flight: milliseconds or a duration. After that it is taken for a stream, or for one that
   * never ends.
   * @default '10s'
   */
  ttl?: Duration;
  /**
   * The limit does not grow while the event loop is delayed by more than this: milliseconds or a duration. Any delay of the event
   * loop counts as latency, and as requests that wait for it.
   * @default '100ms'
   */
  eventLoopDelay?: Duration;
  /**
   * The limit does not grow while the process uses more than this share of its processors: more than 0, at most 1.
   * @default 0.9
   */
  cpu?: number;
  /** The shares of the limit for requests of each priority. */
  shares?: AdaptiveShares;
  /**
   * The HTTP status of a refusal: a whole number from 400 to 599.
   * @default 503
   */
  status?: number;
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

/** The names of the options. */
export const ADAPTIVE_OPTIONS = [
  'min',
  'max',
  'initial',
  'tolerance',
  'smoothing',
  'window',
  'probeEvery',
  'ttl',
  'eventLoopDelay',
  'cpu',
  'shares',
  'status',
] as const;

const INITIAL = 20;
const MAX = 1000;
/** The most units in flight, so that a counter stays small. */
const MOST = 1_000_000;

/** Reads the options. Throws `RateLimitConfigError`. */
export function adaptiveParameters(options: AdaptiveOptions, location: string): AdaptiveParameters {
  const whole = (option: 'min' | 'max' | 'initial' | 'status', usual: number, min: number, max: number) =>
    wholeNumber(location, option, options[option] ?? usual, { min, max });
  const micros = (option: 'window' | 'probeEvery' | 'ttl' | 'eventLoopDelay', usual: Duration) =>
    duration(location, option, options[option] ?? usual);
  const { tolerance = 1.5, smoothing = 0.5, cpu = 0.9 } = options;
  const min = whole('min', Math.min(2, usable(options.max, MAX)), 1, MOST);
  const max = whole('max', Math.max(MAX, min), min, MOST);
  check(location, 'tolerance', tolerance, 'a number > 1 and <= 10', tolerance > 1 && tolerance <= 10);
  check(location, 'smoothing', smoothing, SHARE, isShare(smoothing));
  check(location, 'cpu', cpu, SHARE, isShare(cpu));
  return {
    quota: max,
    min,
    initial: whole('initial', Math.min(Math.max(INITIAL, min), max), min, max),
    tolerance,
    smoothing,
    cpu,
    window: micros('window', '500ms'),
    probeEvery: micros('probeEvery', '30s'),
    ttl: micros('ttl', '10s'),
    eventLoopDelay: micros('eventLoopDelay', '100ms'),
    shares: readShares(options.shares, location),
    status: whole('status', 503, 400, 599),
  };
}

const SHARE = 'a number > 0 and <= 1';

function readShares(shares: unknown, location: string): AdaptiveParameters['shares'] {
  if (shares === undefined) return { critical: 1, default: 0.9, sheddable: 0.6 };
  if (typeof shares !== 'object' || shares === null || Array.isArray(shares)) {
    throw new RateLimitConfigError(messages.wrongOption(location, 'shares', shares, '{ sheddable, default }'));
  }
  const within = `${location}.shares`;
  for (const name of Object.keys(shares)) {
    if (name === 'sheddable' || name === 'default') continue;
    throw new RateLimitConfigError(messages.unknownOption(within, name, ['sheddable', 'default']));
  }
  const given = givenOptions<AdaptiveShares>(shares, ['sheddable', 'default']);
  const usual = given.default ?? 0.9;
  check(within, 'default', usual, SHARE, isShare(usual));
  const sheddable = given.sheddable ?? Math.min(0.6, usual);
  check(
    within,
    'sheddable',
    sheddable,
    `a number > 0 and <= ${usual}, the share of default`,
    isShare(sheddable) && sheddable <= usual,
  );
  return { critical: 1, default: usual, sheddable };
}

/** A number to compare with; if it is wrong, that is reported where it is read. */
function usable(value: number | undefined, usual: number): number {
  return Number.isSafeInteger(value) && value! >= 1 ? value! : usual;
}

function isShare(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && value <= 1;
}

function check(location: string, option: string, got: unknown, wants: string, isRight: boolean): void {
  if (!isRight || typeof got !== 'number') {
    throw new RateLimitConfigError(messages.wrongOption(location, option, got, wants));
  }
}
