import type { Algorithm } from './algorithm.js';
import {
  type ArrivalParameters,
  type ArrivalState,
  arrivalRemaining,
  arrivalResetAfter,
  arrivalRetryAfter,
  arrivalWithQuota,
  openArrival,
  scaleArrival,
} from './arrival-time.js';
import { duration, type Duration, orElse, showDuration, wholeNumber } from './options.js';
import { scaleOf } from './scale.js';

/**
 * A leaky bucket that shapes: units leave one T = interval / rate apart, `delayMs` says when, and a request is refused if
 * more than `queue` units would have to wait. A request of several units leaves when its last unit may.
 */
export interface LeakyBucketOptions {
  /** The algorithm. */
  algo: 'leaky-bucket';
  /** Units that leave an interval: a whole number >= 1. */
  rate: number;
  /** The interval of the rate: milliseconds or a duration such as `'10s'`, at most 1 year. */
  interval: Duration;
  /**
   * Units that may wait, besides the one that leaves at once: a whole number >= 0.
   * @default rate
   */
  queue?: number;
}

/** A place in the queue that was given back: `units` may leave at the tick `time`. */
interface FreePlace {
  readonly time: number;
  readonly units: number;
}

export interface LeakyBucketState extends ArrivalState {
  /** Places before the end of the queue whose request went away, the earliest first; none if more is owed than the quota. */
  free: readonly FreePlace[];
}

export const leakyBucket: Algorithm<LeakyBucketOptions, ArrivalParameters, LeakyBucketState> = {
  name: 'leaky-bucket',
  code: 'lb',
  options: ['rate', 'interval', 'queue'],

  compile(options, place) {
    const rate = wholeNumber(place, 'rate', options.rate);
    const interval = duration(place, 'interval', options.interval);
    const max = Number.MAX_SAFE_INTEGER - 1;
    const queue = wholeNumber(place, 'queue', orElse(options.queue, rate), { min: 0, max });
    const scale = scaleOf(rate, interval, queue + 1, place);
    return { quota: queue + 1, scale, capacity: (queue + 1) * scale.unit };
  },
  defaultName: ({ algo, rate, interval }) => `${algo}:${rate}/${showDuration(interval)}`,
  window: ({ scale }) => scale.interval * scale.tick,
  scriptParameters: ({ scale }) => [scale.unit, scale.speed, scale.tick, scale.interval],

  open(parameters, stored, now) {
    const state = openArrival(parameters, stored, now);
    const free = state.moved || stored === undefined ? [] : stored.free.filter(({ time }) => time >= state.time);
    return { ...state, free };
  },
  fits: (parameters, state, cost) => fitsAtEnd(parameters, state, cost) || placeFor(state, cost) !== undefined,
  take(parameters, state, cost) {
    const place = placeFor(state, cost);
    if (place !== undefined) {
      const rest = { time: place.time, units: place.units - cost };
      state.free = state.free.flatMap((each) => (each !== place ? [each] : rest.units > 0 ? [rest] : []));
    } else {
      // A penalty that fits nowhere takes what is free first.
      const taken = fitsAtEnd(parameters, state, cost) ? 0 : state.free.reduce((sum, { units }) => sum + units, 0);
      if (taken > 0) state.free = [];
      state.debt += Math.max(0, cost - taken) * parameters.scale.unit;
    }
  },
  give({ scale, capacity }, state, units, place) {
    if (place === undefined || place === departure(state, 0)) {
      shorten(state, units * scale.unit);
    } else if (place >= state.time && state.debt > 0) {
      // A penalty is settled before anyone gets the place.
      const settled = Math.min(units, Math.ceil(Math.max(0, state.debt - capacity) / scale.unit));
      state.debt -= settled * scale.unit;
      if (settled === units) return;
      state.free = [...state.free, { time: place, units: units - settled }].sort((a, b) => a.time - b.time);
    }
  },
  save: (_, state) => state,
  bytes: ({ free }) => 250 + 70 * free.length,
  withQuota: arrivalWithQuota,
  scaleUsed: scaleArrival,

  remaining: (parameters, state) =>
    Math.max(arrivalRemaining(parameters, state), ...state.free.map(({ units }) => Math.min(units, parameters.quota))),
  retryAfter: arrivalRetryAfter,
  resetAfter: (_, state) => arrivalResetAfter(state),
  delay: (_, state, cost) => {
    const { scale, now, time } = state;
    return Math.max(0, departure(state, cost) * scale.tick - Math.max(now, time * scale.tick));
  },
  place: (_, state, cost) => departure(state, cost),
  spacing: ({ scale }) => (scale.unit / scale.speed) * scale.tick,
};

function fitsAtEnd({ scale, capacity }: ArrivalParameters, { debt }: ArrivalState, cost: number): boolean {
  return debt + cost * scale.unit <= capacity;
}

/** The earliest place that was given back and is large enough. */
function placeFor({ free }: LeakyBucketState, cost: number): FreePlace | undefined {
  return free.find(({ units }) => units >= cost);
}

/** Takes a weight off the end of the queue, and the places there that are free already. */
function shorten(state: LeakyBucketState, weight: number): void {
  state.debt = Math.max(0, state.debt - weight);
  for (let last = state.free.at(-1); last !== undefined; last = state.free.at(-1)) {
    const end = departure(state, 0);
    if (last.time < end) return;
    if (last.time === end) state.debt = Math.max(0, state.debt - last.units * state.scale.unit);
    state.free = state.free.slice(0, -1);
  }
}

/** The tick at which a request of `cost` units would leave; for 0, the tick at which the last one in the queue leaves. */
function departure(state: LeakyBucketState, cost: number): number {
  const place = cost > 0 ? placeFor(state, cost) : undefined;
  if (place !== undefined) return place.time;
  const { scale, time, debt } = state;
  return time + Math.ceil((debt + (cost - 1) * scale.unit) / scale.speed);
}
