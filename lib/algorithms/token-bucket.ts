import type { Algorithm, Parameters, State } from './algorithm.js';
import { duration, type Duration, oneOf, orElse, showDuration, wholeNumber } from './options.js';
import { MAX_OWED, placeAfter, sameScale, type Scale, scaleOf, ticksFor, unitsUntil, unitsWithin } from './scale.js';

/**
 * A token bucket (RFC 2697 names its parts): it holds up to `burst` tokens, a request of cost c takes c of them, and `rate`
 * tokens flow in an interval: tokens = min(burst, tokens + elapsed x rate / interval).
 */
export interface TokenBucketOptions {
  /** The algorithm. */
  algo: 'token-bucket';
  /** Tokens that flow in an interval: a whole number >= 1. */
  rate: number;
  /** The interval of the rate: milliseconds or a duration such as `'10s'`, at most 1 year. */
  interval: Duration;
  /**
   * Tokens that a full bucket holds: a whole number >= 1.
   * @default rate
   */
  burst?: number;
  /**
   * How tokens flow in: `'greedy'`, evenly, or `'intervally'`, all `rate` at once at the end of each whole interval, counted
   * from the request that found the bucket full.
   * @default 'greedy'
   */
  refill?: 'greedy' | 'intervally';
}

export interface TokenBucketParameters extends Parameters {
  readonly scale: Scale;
  /** burst x unit: the weight of a full bucket. */
  readonly capacity: number;
  /** Tokens flow in every so many ticks: 1, or the interval. */
  readonly step: number;
}

export interface TokenBucketState extends State {
  readonly scale: Scale;
  /** The weight of the tokens at `time`; less than nothing if units were reserved or charged as a penalty. */
  level: number;
  /** The tick of the last refill. */
  time: number;
}

export const tokenBucket: Algorithm<TokenBucketOptions, TokenBucketParameters, TokenBucketState> = {
  name: 'token-bucket',
  code: 'tb',
  options: ['rate', 'interval', 'burst', 'refill'],

  compile(options, place) {
    const rate = wholeNumber(place, 'rate', options.rate);
    const interval = duration(place, 'interval', options.interval);
    const quota = options.burst === undefined ? rate : wholeNumber(place, 'burst', options.burst);
    const refill = oneOf(place, 'refill', orElse(options.refill, 'greedy'), ['greedy', 'intervally']);
    const scale = scaleOf(rate, interval, quota, place);
    return { quota, scale, capacity: quota * scale.unit, step: refill === 'greedy' ? 1 : scale.interval };
  },
  defaultName: ({ algo, rate, interval }) => `${algo}:${rate}/${showDuration(interval)}`,
  window: ({ scale }) => scale.interval * scale.tick,
  scriptParameters: ({ scale, step }) => [scale.unit, scale.speed, scale.tick, scale.interval, step],

  open({ scale, capacity, step }, stored, now) {
    const tick = Math.floor(now / scale.tick);
    if (stored === undefined) return { now, moved: false, scale, level: capacity, time: tick };
    let { level, time } = stored;
    let moved = false;
    if (!sameScale(stored.scale, scale)) {
      const old = stored.scale;
      const oldTick = Math.floor(now / old.tick);
      level = Math.max(
        Math.floor(((level + Math.max(0, oldTick - time) * old.speed) / old.unit) * scale.unit),
        -MAX_OWED,
      );
      time = tick + Math.ceil((Math.max(0, time - oldTick) * old.tick) / scale.tick);
      moved = true;
    }
    if (tick >= time) {
      const elapsed = tick - time - ((tick - time) % step);
      level += elapsed * scale.speed;
      time += elapsed;
    } else if (time - tick >= scale.interval) {
      time = tick;
      moved = true;
    }
    if (level >= capacity) {
      level = capacity;
      time = Math.max(tick, time);
    }
    return { now, moved, scale, level, time };
  },
  fits: ({ scale }, { level }, cost) => cost * scale.unit <= level,
  take({ scale }, state, cost) {
    state.level -= cost * scale.unit;
  },
  give(parameters, state, units, place = -1, at) {
    const { scale, capacity, step } = parameters;
    let gone = 0;
    // What was reserved after units which were to be used at `place` stays; what may have flowed in for them by now has.
    if (place > state.time) gone = covered(parameters, state) - place;
    else if (at !== undefined) {
      gone = Math.ceil((state.time - Math.max(place, Math.floor(at / scale.tick))) / step) * step;
    }
    state.level = Math.min(capacity, state.level + Math.max(0, units * scale.unit - Math.max(0, gone) * scale.speed));
  },
  save: (_, state) => state,
  withQuota: (parameters, quota) => ({ ...parameters, quota, capacity: quota * parameters.scale.unit }),

  remaining: ({ scale }, { level }) => Math.floor(level / scale.unit),
  retryAfter: (parameters, state, cost) => untilFilled(parameters, state, cost * parameters.scale.unit),
  resetAfter: (parameters, state) =>
    state.level < parameters.capacity ? untilFilled(parameters, state, parameters.capacity) : 0,
  lease: {
    parameters: (parameters, ttl) => {
      const quota = parameters.quota - unitsWithin(parameters.scale, ttl);
      if (quota < 1 || parameters.step > 1) return undefined;
      return { ...parameters, quota, capacity: quota * parameters.scale.unit };
    },
    endsWithWindow: false,
  },
  covered,
  owable: ({ scale }, { level }, cost) => cost * scale.unit - level <= MAX_OWED,
  placeUnder: (before, { scale, step }, place, now, share) => {
    const old = before.scale;
    let units = unitsUntil(old, place, now);
    if (before.step > 1) {
      // Whole intervals, and as if the units of the last one came one by one.
      const atOnce = (before.step * old.speed) / old.unit;
      units = (Math.ceil(units / atOnce) - 1 + share) * atOnce;
    }
    return placeAfter(scale, now, Math.ceil(ticksFor(scale, units) / step) * step);
  },
};

/** The tick at which the bucket holds `level`, which it does not yet. */
function filled({ scale, step }: TokenBucketParameters, state: TokenBucketState, level: number): number {
  const ticks = Math.ceil((level - state.level) / scale.speed);
  return state.time + Math.ceil(ticks / step) * step;
}

/** Microseconds until then. */
function untilFilled(parameters: TokenBucketParameters, state: TokenBucketState, level: number): number {
  return filled(parameters, state, level) * parameters.scale.tick - state.now;
}

function covered(parameters: TokenBucketParameters, state: TokenBucketState): number {
  return state.level < 0 ? filled(parameters, state, 0) : state.time;
}
