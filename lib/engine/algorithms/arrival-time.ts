import type { Parameters, ScriptValue, State } from './algorithm.js';
import type { SharingTerms } from './capabilities.js';
import { inProportion, MAX_OWED, sameScale, type Scale, timeFor, unitsWithin } from './scale.js';
import { nameOfRate } from './share.js';

/**
 * The core of GCRA, the token bucket and the shaping leaky bucket: a theoretical arrival time (TAT) that each unit moves forward
 * by T = interval / rate, and that may be ahead of now by at most quota x T. It is stored exactly, as the weight owed at a tick:
 * TAT = time + debt / speed. A debt is the same under any quota: a smaller quota never reduces it, so a counter that two
 * definitions share allows no more than the larger one would alone.
 */
export interface ArrivalParameters extends Parameters {
  readonly scale: Scale;
  /** quota x unit: the maximum weight that can be owed. */
  readonly capacity: number;
}

export interface ArrivalState extends State {
  scale: Scale;
  /** The weight owed at `time`. It exceeds the capacity if units were reserved, charged as a penalty, or allowed by a larger quota. */
  debt: number;
  /** A tick: now, or later while the clock catches up. If everything drains at once: the time of the last drain. */
  time: number;
}

function arrivalWithQuota(parameters: ArrivalParameters, quota: number): ArrivalParameters {
  return { ...parameters, quota, capacity: quota * parameters.scale.unit };
}

/** The tick from which no more than the quota is owed. */
export function arrivalDebtClearedAt({ capacity }: ArrivalParameters, state: ArrivalState): number {
  return flowed(state, state.debt - capacity);
}

/** Opens a state by writing it over `state`. */
export function openArrival(
  { scale }: ArrivalParameters,
  stored: ArrivalState | undefined,
  now: number,
  state: ArrivalState,
): void {
  const tick = Math.floor(now / scale.tick);
  let debt = 0;
  let time = tick;
  let migrated = false;
  if (stored !== undefined) {
    ({ debt, time } = stored);
    if (!sameScale(stored.scale, scale)) {
      ({ debt, time } = rescaled(stored, scale, now));
      migrated = true;
    }
    if (tick >= time) {
      let elapsed = tick - time;
      if (scale.step > 1) elapsed -= elapsed % scale.step;
      debt = Math.max(0, debt - elapsed * scale.speed);
      // If everything drains at once, the next interval begins with the request that finds no debt.
      time = debt === 0 ? tick : time + elapsed;
    } else if (time - tick >= scale.interval) {
      time = tick;
      migrated = true;
    }
  }
  state.now = now;
  state.migrated = migrated;
  state.scale = scale;
  state.debt = debt;
  state.time = time;
}

/** The remaining debt at `now`, and the time from which it drains with another scale. */
function rescaled({ scale: old, debt, time }: ArrivalState, scale: Scale, now: number): { debt: number; time: number } {
  const elapsed = Math.max(0, Math.floor(now / old.tick) - time);
  const part = old.step > 1 ? elapsed % old.step : 0;
  const left = Math.max(0, debt - (elapsed - part) * old.speed);
  // An interval that is not over has not drained anything, but has begun. It continues, unless the new intervals are shorter.
  const goesOn = old.step > 1 && scale.step > 1;
  const from = goesOn ? (time + elapsed - part) * old.tick : Math.max(now, (time + elapsed) * old.tick);
  const begun = Math.ceil(from / scale.tick);
  const over = scale.step > 1 ? Math.max(0, Math.floor(now / scale.tick) - begun) : 0;
  return {
    debt: inProportion(left, scale.unit, old.unit),
    time: begun + (over - (over % scale.step)),
  };
}

/** The tick at which a weight has drained. */
function flowed({ scale, time }: ArrivalState, weight: number): number {
  return time + wholeSteps(Math.max(0, Math.ceil(weight / scale.speed)), scale.step);
}

function wholeSteps(ticks: number, step: number): number {
  return step > 1 ? Math.ceil(ticks / step) * step : ticks;
}

export function arrivalResetAfter(state: ArrivalState): number {
  return state.debt > 0 ? untilFlowed(state, state.debt) : 0;
}

/** Microseconds until `weight` has drained. */
function untilFlowed(state: ArrivalState, weight: number): number {
  return flowed(state, weight) * state.scale.tick - state.now;
}

/** The common part of gcra, the token bucket and the leaky bucket, regardless of the rest of their states. */
export const counting = {
  defaultName: nameOfRate,
  window: ({ scale }: ArrivalParameters): number => scale.interval * scale.tick,
  pace: ({ scale, quota }: ArrivalParameters): number => timeFor(scale, quota),
  scriptParameters: ({ scale }: ArrivalParameters): ScriptValue[] => [
    scale.unit,
    scale.speed,
    scale.tick,
    scale.interval,
  ],
  fits: ({ scale, capacity }: ArrivalParameters, { debt }: ArrivalState, cost: number): boolean =>
    debt + cost * scale.unit <= capacity,
  take({ scale }: ArrivalParameters, state: ArrivalState, cost: number): void {
    state.debt += cost * scale.unit;
  },
  /**
   * Units that were reserved after the refunded ones keep their times. The part that may have drained since these units could be used isn't
   * refunded: it is everything that drains from then until no more than the quota is owed.
   */
  give(parameters: ArrivalParameters, state: ArrivalState, units: number, ticket = -1, chargedAt = -1): void {
    const { unit, speed, tick, step } = parameters.scale;
    const usable = Math.max(ticket, Math.floor(chargedAt / tick));
    const gone = usable < 0 ? 0 : Math.max(0, arrivalDebtClearedAt(parameters, state) - usable);
    state.debt = Math.max(0, state.debt - Math.max(0, units * unit - wholeSteps(gone, step) * speed));
  },
  save: <S extends ArrivalState>(_: ArrivalParameters, state: S): S => state,
  withQuota: arrivalWithQuota,
  scaleUsed(_: ArrivalParameters, state: ArrivalState, to: number, from: number): void {
    state.debt = Math.min(inProportion(state.debt, to, from), MAX_OWED);
  },
  remaining: ({ scale, capacity }: ArrivalParameters, { debt }: ArrivalState): number =>
    Math.floor((capacity - debt) / scale.unit),
  retryAfter: ({ scale, capacity }: ArrivalParameters, state: ArrivalState, cost: number): number =>
    untilFlowed(state, state.debt + (cost * scale.unit - capacity)),
  resetAfter: (_: ArrivalParameters, state: ArrivalState): number => arrivalResetAfter(state),
};

/** How units are divided among instances and tenants. Not for the leaky bucket, whose units leave one after another. */
export const dividing = {
  prefetch: {
    /** Units may be used up to `ttl` after they were charged, so their number is reduced by the units that drain in that time. */
    parameters(parameters: ArrivalParameters, ttl: number): ArrivalParameters | undefined {
      const quota = parameters.quota - unitsWithin(parameters.scale, ttl);
      return quota < 1 || parameters.scale.step > 1 ? undefined : arrivalWithQuota(parameters, quota);
    },
    endsWithWindow: false,
  },
  sharing: {
    /** The quota or, if fewer, the units that drain evenly in an interval. */
    terms({ scale, capacity, quota }: ArrivalParameters): SharingTerms {
      const { unit, speed, tick, interval } = scale;
      const rate = (interval * speed) / unit;
      if (quota < rate) return { units: rate, span: interval * tick };
      return { units: quota, span: Math.ceil(capacity / speed) * tick };
    },
  },
};

/** The common part of the reservations of gcra and the token bucket. */
export const reserving = {
  debtClearedAt: arrivalDebtClearedAt,
  canOwe: ({ scale }: ArrivalParameters, { debt }: ArrivalState, cost: number): boolean =>
    debt + cost * scale.unit <= MAX_OWED,
  spacing: ({ scale }: ArrivalParameters): number => (scale.unit / scale.speed) * scale.tick,
  step: ({ scale }: ArrivalParameters): number => scale.step * scale.tick,
};
