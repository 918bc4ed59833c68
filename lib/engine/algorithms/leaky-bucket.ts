import { readOptions } from '../options/check-options.js';
import { whole } from '../options/kinds.js';
import type { Duration } from '../options/values.js';
import type { Algorithm } from './algorithm.js';
import { type ArrivalParameters, type ArrivalState, counting, openArrival, reserving } from './arrival-time.js';
import { rateOptions } from './common-options.js';
import { ticketAfter, scaleOf, ticksFor, unitsUntil } from './scale.js';
import { shareOfRate, wholeShare } from './share.js';

/**
 * A leaky bucket that shapes traffic: units leave one T = interval / rate apart, as reported in `delayMs`, and a request is rejected if
 * more than `queue` units would have to wait. A request of several units leaves with its last unit.
 */
export interface LeakyBucketOptions {
  /** The algorithm. */
  algo: 'leaky-bucket';
  /** The number of units that leave per interval: a whole number >= 1. */
  rate: number;
  /** The interval of the rate: milliseconds or a duration such as `'10s'`, at most 1 year. */
  interval: Duration;
  /**
   * The number of units that may wait, not including the one that leaves immediately: a whole number >= 0.
   * @default rate
   */
  queue?: number | undefined;
}

/**
 * Departure slots that were returned while other requests were queued behind them: `units` consecutive slots, one T apart, of which the
 * last leaves at tick `time`.
 */
interface FreeSlots {
  readonly time: number;
  readonly units: number;
}

/** Units removed from the end of the queue without a ticket. */
interface Cut {
  /** The tick at which the last remaining unit leaves. */
  readonly end: number;
  /** The time at which they were removed, in microseconds. */
  readonly at: number;
}

export interface LeakyBucketState extends ArrivalState {
  /** Sorted by time; empty if more than the quota is owed. */
  free: readonly FreeSlots[];
  /** Units at the end of the queue that a penalty has added beyond the quota. No request waits there. */
  penalty: number;
  /** The last cut. Slots beyond it that were taken earlier have already been returned. */
  cut: Cut | undefined;
}

const NONE_FREE: readonly FreeSlots[] = [];

/** The maximum number of ranges of free slots. Beyond it, those farthest in the future stay unused. */
const MAX_FREE = 100;

const options = {
  ...rateOptions,
  queue: {
    kind: whole(0, Number.MAX_SAFE_INTEGER - 1),
    text: 'The number of units that may wait, in addition to the one that leaves immediately.',
    usual: 'the rate',
  },
} as const;

export const leakyBucket: Algorithm<LeakyBucketOptions, ArrivalParameters, LeakyBucketState> = {
  name: 'leaky-bucket',
  code: 'ld',
  options,

  compile(given, location) {
    const { rate, interval, queue = rate } = readOptions(location, given, options);
    const scale = scaleOf(rate, interval, queue + 1, location);
    return { quota: queue + 1, scale, capacity: (queue + 1) * scale.unit };
  },
  share: (options, part) => ({
    ...shareOfRate(options, part),
    queue: wholeShare(options.queue ?? options.rate, part),
  }),

  ...counting,
  open(parameters, stored, now) {
    const { scale } = parameters;
    const rest = { free: NONE_FREE, penalty: 0, cut: undefined };
    const state: LeakyBucketState = { now, migrated: false, scale, debt: 0, time: now, ...rest };
    reopen(parameters, stored, now, state);
    return state;
  },
  reopen,
  fits: (parameters, state, cost) =>
    counting.fits(parameters, state, cost) || freeFor(state, cost + (parameters.kept ?? 0)) !== undefined,
  take(parameters, state, cost) {
    const slots = freeFor(state, cost);
    if (slots !== undefined) {
      // Takes the earliest of them.
      const units = slots.units - cost;
      state.free = state.free.flatMap((each) => (each !== slots ? [each] : units > 0 ? [{ ...each, units }] : []));
    } else if (counting.fits(parameters, state, cost)) {
      state.debt += cost * parameters.scale.unit;
    } else {
      // A penalty that does not fit takes free slots first.
      const left = Math.max(0, cost - state.free.reduce((sum, { units }) => sum + units, 0));
      state.free = [];
      state.debt += left * parameters.scale.unit;
      state.penalty += left;
    }
  },
  give(parameters, state, units, ticket, chargedAt) {
    if (ticket === undefined) {
      shorten(state, units);
      const end = departure(state, 0);
      state.cut = { end: state.cut === undefined ? end : Math.min(end, state.cut.end), at: state.now };
      return;
    }
    // The slot was taken before the clock was set back, or before units were removed from the end, and no longer belongs to the request.
    if (chargedAt !== undefined && Math.floor(chargedAt / state.scale.tick) > state.time) return;
    if (state.cut !== undefined && ticket > state.cut.end && (chargedAt ?? 0) <= state.cut.at) return;
    const end = departure(state, 0);
    if (ticket === end) shorten(state, units);
    // A ticket between two slots belongs to a queue that has already drained.
    else if (ticket >= state.time && ticket < end && ticket - tickOf(state, indexOf(state, ticket)) <= 1) {
      free(parameters, state, units, ticket);
    }
  },
  bytes: ({ free }) => 100 + 70 * free.length,

  remaining: (parameters, state) =>
    state.free.reduce(
      (most, { units }) => Math.max(most, Math.min(units - (parameters.kept ?? 0), parameters.quota)),
      counting.remaining(parameters, state),
    ),
  queue: {
    delay: (_, state, cost) => {
      const { scale, now, time } = state;
      return Math.max(0, departure(state, cost) * scale.tick - Math.max(now, time * scale.tick));
    },
    ticket: (_, state, cost) => departure(state, cost),
    ticketUnder: (before, { scale }, ticket, now) =>
      ticketAfter(scale, now, ticksFor(scale, unitsUntil(before.scale, ticket, now))),
    ticketBefore: ({ scale }, ticket, units) => ticket - Math.floor((units * scale.unit) / scale.speed),
    spacing: reserving.spacing,
  },
};

function reopen(
  parameters: ArrivalParameters,
  stored: LeakyBucketState | undefined,
  now: number,
  state: LeakyBucketState,
): void {
  openArrival(parameters, stored, now, state);
  state.free = NONE_FREE;
  state.penalty = 0;
  state.cut = undefined;
  if (stored === undefined || state.migrated) return;
  state.cut = stored.cut;
  if (state.debt > parameters.capacity) state.penalty = stored.penalty;
  else if (stored.free.length > 0) state.free = stored.free.flatMap((slots) => stillToCome(state, slots));
}

/** The earliest range with enough free slots. */
function freeFor({ free }: LeakyBucketState, cost: number): FreeSlots | undefined {
  return free.find(({ units }) => units >= cost);
}

/** The tick at which a request of `cost` units would leave; for 0, the tick at which the last one in the queue leaves. */
function departure(state: LeakyBucketState, cost: number): number {
  const slots = cost > 0 ? freeFor(state, cost) : undefined;
  return tickOf(state, slots === undefined ? -cost : indexOf(state, slots.time) + slots.units - cost);
}

/** The tick at which a unit leaves: index 0 is the last one of the queue, 1 the one before it. */
function tickOf({ scale, time, debt }: LeakyBucketState, index: number): number {
  return time + Math.ceil((debt - (index + 1) * scale.unit) / scale.speed);
}

/** The index of the unit that leaves at a tick. */
function indexOf({ scale, time, debt }: LeakyBucketState, tick: number): number {
  return Math.ceil((debt - (tick - time) * scale.speed) / scale.unit) - 1;
}

/** The part of free slots whose time has not come yet. */
function stillToCome(state: LeakyBucketState, { time, units }: FreeSlots): FreeSlots[] {
  const left = Math.ceil((state.debt + state.scale.speed) / state.scale.unit) - 1 - indexOf(state, time);
  return left > 0 ? [{ time, units: Math.min(units, left) }] : [];
}

/** Removes units from the end of the queue, and the free slots there. */
function shorten(state: LeakyBucketState, units: number): void {
  const { unit } = state.scale;
  state.debt = Math.max(0, state.debt - units * unit);
  state.penalty = Math.max(0, state.penalty - units);
  for (let last = state.free.at(-1); last !== undefined; last = state.free.at(-1)) {
    const index = indexOf(state, last.time);
    if (index > 0) return;
    state.debt = Math.max(0, state.debt - Math.max(0, last.units + index) * unit);
    state.free = state.free.slice(0, -1);
  }
}

/** Frees `units` slots, of which the last leaves at tick `time`. A penalty is settled first. */
function free(
  { capacity, scale, kept = 0 }: ArrivalParameters,
  state: LeakyBucketState,
  units: number,
  time: number,
): void {
  const settled = Math.min(units, state.penalty);
  state.debt -= settled * state.scale.unit;
  state.penalty -= settled;
  if (state.debt > capacity + kept * scale.unit || settled === units) return;
  const [slots] = stillToCome(state, { time, units: units - settled });
  if (slots === undefined) return;
  let added = slots;
  const before: FreeSlots[] = [];
  const behind: FreeSlots[] = [];
  for (const each of state.free) {
    const isBefore = each.time <= added.time;
    const [first, second]: FreeSlots[] = isBefore ? [each, added] : [added, each];
    const from = indexOf(state, first!.time);
    const to = indexOf(state, second!.time);
    if (from > to + second!.units) (isBefore ? before : behind).push(each);
    // They are consecutive, or overlap.
    else added = { time: second!.time, units: Math.max(from + first!.units, to + second!.units) - to };
  }
  state.free = [...before, added, ...behind].slice(0, MAX_FREE);
}
