import { readOptions } from '../../options/check-options.js';
import type { Algorithm, Variant } from '../algorithm.js';
import { arrivalDebtClearedAt, type ArrivalParameters, arrivalResetAfter, type ArrivalState } from '../arrival-time.js';
import { inProportion, MAX_OWED } from '../scale.js';
import { extraWeight, type Ramp, rampOf, type WarmingLimitOptions, warmUpOptions } from './ramp.js';

export interface WarmingParameters extends ArrivalParameters {
  readonly ramp: Ramp;
}

export interface WarmingState extends ArrivalState {
  /** Up to `cold`. Below 0 for units that found no coldness, so that they also find none when they are refunded. */
  coldness: number;
  /** The full coldness, and the coldness that is added per idle tick. */
  cold: number;
  rest: number;
  /** The time since which something has been owed, in microseconds. The coldness has not grown since then. */
  busySince: number;
}

/** An algorithm based on arrival times, whose states can be overwritten. */
type Arriving<P = ArrivalParameters, S = ArrivalState> = Required<
  Pick<Algorithm<WarmingLimitOptions, P & ArrivalParameters, S & ArrivalState>, 'reopen' | 'reservation'>
> &
  Algorithm<WarmingLimitOptions, P & ArrivalParameters, S & ArrivalState>;

/**
 * An algorithm based on arrival times that warms up. The debt decides as usual, but a unit of a cold limit weighs more, so that more is
 * owed for it: P = units x unit + E(coldness) - E(coldness - units x use), where E is the extra weight of `Ramp`. Since a unit never weighs
 * less than one of a warm limit, no more than rate x t + burst are allowed in any stretch of time t. Of a cold limit, no more units are
 * allowed before the last request than the weight that drains in t and the burst.
 */
export const warmUp: Variant = {
  options: warmUpOptions,
  of: (algorithm) => algorithm.warming && (warming(algorithm as unknown as Arriving, algorithm.warming.code) as never),
};

function warming(base: Arriving, code: string): Algorithm<WarmingLimitOptions, WarmingParameters, WarmingState> {
  const reopen: Arriving<WarmingParameters, WarmingState>['reopen'] = (parameters, stored, now, state) => {
    base.reopen(parameters, stored, now, state);
    cool(parameters, stored, now, state);
  };
  const rows = { ...base.options, ...warmUpOptions };
  const { prefetch: _, ...rest } = base as unknown as Arriving<WarmingParameters, WarmingState>;
  return {
    ...rest,
    code,
    scriptPrefix: 'warm-up+',
    compile(options, location) {
      readOptions(location, options, rows);
      const parameters = base.compile(options, location);
      return { ...parameters, ramp: rampOf(options.warmUp!, parameters.scale, parameters.quota, location) };
    },
    scriptParameters(parameters, now) {
      const { rest, use, warm, cold, extra } = parameters.ramp;
      return [...base.scriptParameters(parameters, now), rest, use, warm, cold, extra];
    },
    open(parameters, stored, now) {
      const state = base.open(parameters, stored, now) as WarmingState;
      cool(parameters, stored, now, state);
      return state;
    },
    reopen,
    take: takeWarming,
    give: giveWarming,
    keepFor: keepWarming,
    reservation: { ...base.reservation, canOwe: canOweWarming },
  };
}

/** Updates the coldness to `now`: it grows while nothing is owed, with the parameters with which it was stored. */
function cool({ ramp }: WarmingParameters, stored: WarmingState | undefined, now: number, state: WarmingState): void {
  let coldness = ramp.cold;
  let busySince = now;
  if (stored !== undefined) {
    ({ coldness, busySince } = stored);
    if (state.debt === 0) {
      const { speed, tick } = stored.scale;
      const cleared = (stored.time + Math.ceil(stored.debt / speed)) * tick;
      const idle = Math.floor(Math.max(0, now - cleared) / tick);
      coldness = Math.min(stored.cold, Math.max(0, coldness) + idle * stored.rest);
      busySince = now;
    }
    if (stored.cold !== ramp.cold || stored.rest !== ramp.rest) {
      const size = inProportion(Math.abs(coldness), ramp.cold, stored.cold);
      coldness = coldness < 0 ? Math.max(-MAX_OWED, -size) : size;
      state.migrated = true;
    }
  }
  state.coldness = coldness;
  state.cold = ramp.cold;
  state.rest = ramp.rest;
  state.busySince = busySince;
}

/** The additional weight of units at a coldness, compared to a warm limit. */
function extraOf(ramp: Ramp, coldness: number, units: number): number {
  return extraWeight(ramp, coldness) - extraWeight(ramp, coldness - units * ramp.use);
}

function takeWarming({ scale, ramp }: WarmingParameters, state: WarmingState, cost: number): void {
  state.debt += cost * scale.unit + extraOf(ramp, state.coldness, cost);
  state.coldness = Math.max(-MAX_OWED, state.coldness - cost * ramp.use);
}

function canOweWarming({ scale, ramp }: WarmingParameters, state: WarmingState, cost: number): boolean {
  return state.debt + cost * scale.unit + extraOf(ramp, state.coldness, cost) <= MAX_OWED;
}

/**
 * Refunds units. If they were charged since something has been owed, the limit becomes as cold as if they had not been taken, and they
 * weigh as much as if they had been taken last; otherwise they weigh as much as in a warm limit. The rest is as in `counting.give`.
 */
function giveWarming(
  parameters: WarmingParameters,
  state: WarmingState,
  units: number,
  ticket = -1,
  chargedAt = -1,
): void {
  const { scale, ramp } = parameters;
  const isRecent = chargedAt >= state.busySince;
  const colder = isRecent ? Math.min(ramp.cold, state.coldness + units * ramp.use) : state.coldness;
  let weight = units * scale.unit + extraWeight(ramp, colder) - extraWeight(ramp, state.coldness);
  const usable = Math.max(ticket, Math.floor(chargedAt / scale.tick));
  const gone = usable < 0 ? 0 : Math.max(0, arrivalDebtClearedAt(parameters, state) - usable);
  weight -= gone * scale.speed;
  // A ticket is the time at which the full weight of the units had drained, and those behind them may be used earlier.
  if (gone > 0 && ticket >= 0) weight -= extraOf(ramp, ramp.cold, units);
  if (weight <= 0) return;
  state.debt = Math.max(0, state.debt - weight);
  state.coldness = colder;
}

/** The time until nothing is owed and the limit is fully cold. */
function keepWarming({ ramp, scale }: WarmingParameters, state: WarmingState): number {
  const idle = Math.ceil((ramp.cold - Math.max(0, state.coldness)) / ramp.rest);
  return arrivalResetAfter(state) + (idle > 0 ? (idle + 1) * scale.tick : 0);
}
