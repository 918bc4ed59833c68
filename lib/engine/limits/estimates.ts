import type { Algorithm, Parameters, State } from '../algorithms/algorithm.js';

/** A later change of a charge: units that were refunded, or actually used. */
export interface Correction {
  readonly difference: number;
  /** The time of the charge, in microseconds; `undefined` if it is not known. */
  readonly chargedAt: number | undefined;
}

/** The units of an in-process counter that were reserved as an estimate. */
export interface KeptEstimates {
  /** Their estimated memory, in bytes. */
  readonly bytes: number;
  /** The time until which they are needed, in microseconds. */
  readonly until: number;
  /** True if any of them had lapsed when the counter was last opened. More may have lapsed the next time. */
  readonly haveLapsed: boolean;
}

/** The limit that decides on a counter. */
export interface DecidingLimit {
  readonly algorithm: Algorithm;
  readonly parameters: Parameters;
  readonly quota: number;
  readonly varies: boolean;
  readonly features: readonly object[] | undefined;
}

/** An in-process counter at the current time. */
export interface OpenCounter {
  /** `whole` has the full quota, if a part of it is reserved for others. */
  readonly limit: DecidingLimit & { readonly whole: DecidingLimit };
  readonly state: State;
  /** The estimates of the counter; `undefined` if it never had any. */
  estimates: KeptEstimates | undefined;
  /** The later changes of its charges. */
  corrections: Correction[] | undefined;
}

/** Units to be settled. */
export interface Settlement {
  readonly units: number;
  readonly ticket?: number | undefined;
  readonly chargedAt?: number | undefined;
  /** The units that were actually used; by default none. */
  readonly actual?: number | undefined;
}

/** Units that were refunded, and the time of their charge, in microseconds. */
export interface ReturnedUnits {
  readonly units: number;
  readonly chargedAt: number;
}

/**
 * Stores units that are reserved as an estimate: they count immediately, until they are settled or lapse. The feature's fragment does the
 * same on Redis.
 */
export interface Estimates {
  /** The stored state of a counter. If its window is over, it includes the refunds from before the end of the window. */
  stored(limit: DecidingLimit, state: State, estimates: KeptEstimates, now: number): State;
  /** Called when a counter with estimates is opened: refunds some of those that have lapsed, or all of them. */
  opened(counter: OpenCounter, all: boolean): void;
  /** The time until enough of them have lapsed for a cost to fit, in microseconds; `Infinity` for never. */
  untilFits(counter: OpenCounter, cost: number): number;
  /** Stores units that a counter was just charged. Returns their ticket. */
  reserved(counter: OpenCounter, units: number): number;
  /** Replaces the estimate with the units actually used, once. Returns true if the estimate was known. */
  settled(counter: OpenCounter, settlement: Settlement): boolean;
  /** Called when a counter with estimates is stored. Returns how long its state is needed for them, in microseconds. */
  saved(counter: OpenCounter): number;
  /**
   * The key of the sorted set on Redis for a counter with this key. The scores are the times at which its members lapse; those at or below
   * 0 had lapsed when the counter was last opened, and have been refunded.
   */
  setOf(key: string): string;
  /** The units that are refunded when a member of such a set lapses, if any. */
  returnedBy(member: string): ReturnedUnits | undefined;
}

/** Units that count until their holder releases or settles them, or they lapse. */
export interface HeldNow {
  /** The number of leases or reservations that hold them. */
  readonly count: number;
  /** The units that these hold together; absent if there are too many to add up. */
  readonly units?: number;
  /** The milliseconds until the first of them lapses, unless it is renewed, released or settled before; absent if there are none. */
  readonly firstLapseMs?: number;
  /** The milliseconds until the last of them lapses; absent if there are none, or too many to add up. */
  readonly lastLapseMs?: number;
}
