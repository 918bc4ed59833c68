import type { Parameters, State } from './algorithm.js';
import { MAX_OWED, sameScale, type Scale } from './scale.js';

/**
 * The core of GCRA and of the shaping leaky bucket: a theoretical arrival time (TAT) that each unit moves forward by
 * T = interval / rate, and that may run ahead of now by at most quota x T. It is kept exactly, as the weight that is still
 * owed at a tick: TAT = time + debt / speed.
 */
export interface ArrivalParameters extends Parameters {
  readonly scale: Scale;
  /** quota x unit: the most that can be owed. */
  readonly capacity: number;
}

export interface ArrivalState extends State {
  readonly scale: Scale;
  /** What is owed at `time`, as a weight. */
  debt: number;
  /** More is owed than the quota, since units were reserved or charged as a penalty: it is not forgiven if the quota shrinks. */
  overdrawn: boolean;
  /** A tick: now, or later while the clock catches up. */
  time: number;
}

/**
 * Gives units back. What was reserved after those which were to be used at the tick `place` stays, and what may have flowed
 * off of them since `at` has.
 */
export function giveArrival(
  parameters: ArrivalParameters,
  state: ArrivalState,
  units: number,
  place = -1,
  at?: number,
): void {
  const { unit, speed, tick } = parameters.scale;
  let gone = 0;
  if (place > state.time) gone = arrivalCovered(parameters, state) - place;
  else if (at !== undefined) gone = state.time - Math.max(place, Math.floor(at / tick));
  state.debt = Math.max(0, state.debt - Math.max(0, units * unit - Math.max(0, gone) * speed));
}

export function arrivalWithQuota(parameters: ArrivalParameters, quota: number): ArrivalParameters {
  return { ...parameters, quota, capacity: quota * parameters.scale.unit };
}

export function saveArrival<S extends ArrivalState>({ capacity }: ArrivalParameters, state: S): S {
  state.overdrawn = state.debt > capacity;
  return state;
}

/** The tick at which no more is owed than the quota. */
export function arrivalCovered({ scale, capacity }: ArrivalParameters, { time, debt }: ArrivalState): number {
  return time + Math.max(0, Math.ceil((debt - capacity) / scale.speed));
}

export function arrivalOwable({ scale }: ArrivalParameters, { debt }: ArrivalState, cost: number): boolean {
  return debt + cost * scale.unit <= MAX_OWED;
}

export function openArrival(
  { scale, capacity }: ArrivalParameters,
  stored: ArrivalState | undefined,
  now: number,
): ArrivalState {
  const tick = Math.floor(now / scale.tick);
  if (stored === undefined) return { now, moved: false, scale, debt: 0, overdrawn: false, time: tick };
  let { debt, time } = stored;
  let moved = false;
  if (!sameScale(stored.scale, scale)) {
    const old = stored.scale;
    const oldTick = Math.floor(now / old.tick);
    const owed = Math.max(0, debt - Math.max(0, oldTick - time) * old.speed);
    debt = Math.min(Math.ceil((owed / old.unit) * scale.unit), MAX_OWED);
    time = tick + Math.ceil((Math.max(0, time - oldTick) * old.tick) / scale.tick);
    moved = true;
  }
  if (tick >= time) {
    debt = Math.max(0, debt - (tick - time) * scale.speed);
    time = tick;
  } else if (time - tick >= scale.interval) {
    time = tick;
    moved = true;
  }
  if (debt > capacity && !stored.overdrawn) {
    debt = capacity;
    moved = true;
  }
  return { now, moved, scale, debt, overdrawn: debt > capacity, time };
}

/** Microseconds until `weight` has flowed off. */
export function untilFlowed({ scale, time, now }: ArrivalState, weight: number): number {
  return (time + Math.ceil(weight / scale.speed)) * scale.tick - now;
}

export function arrivalRemaining({ scale, capacity }: ArrivalParameters, { debt }: ArrivalState): number {
  return Math.floor((capacity - debt) / scale.unit);
}

export function arrivalRetryAfter({ scale, capacity }: ArrivalParameters, state: ArrivalState, cost: number): number {
  return untilFlowed(state, state.debt + (cost * scale.unit - capacity));
}

export function arrivalResetAfter(state: ArrivalState): number {
  return state.debt > 0 ? untilFlowed(state, state.debt) : 0;
}
