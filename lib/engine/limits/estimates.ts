import type { Algorithm, Parameters, State } from '../algorithms/algorithm.js';

/** A change of what a counter was charged before: units that came back, or that were really used. */
export interface Correction {
  readonly difference: number;
  /** When they were charged, in microseconds; nothing if it is not known. */
  readonly chargedAt: number | undefined;
}

/** The units of a counter that were reserved at an estimate, where counters live in process. */
export interface KeptEstimates {
  /** The bytes that they take, by estimate. */
  readonly bytes: number;
  /** Until when they are needed, in microseconds. */
  readonly until: number;
  /** Whether any of them had lapsed when the counter was opened last. There may be more when it is opened next. */
  readonly haveLapsed: boolean;
}

/** A limit by which counters are decided. */
export interface DecidingLimit {
  readonly algorithm: Algorithm;
  readonly parameters: Parameters;
  readonly quota: number;
  readonly varies: boolean;
  readonly features: readonly object[] | undefined;
}

/** A counter as of now, where counters live in process. */
export interface OpenCounter {
  /** With all of its quota, if a part of it is kept from those who ask. */
  readonly limit: DecidingLimit & { readonly whole: DecidingLimit };
  readonly state: State;
  /** What it keeps; `undefined` if it never kept any. */
  estimates: KeptEstimates | undefined;
  /** Changes of what it was charged before. */
  corrections: Correction[] | undefined;
}

/** Units to settle. */
export interface Settlement {
  readonly units: number;
  readonly ticket?: number | undefined;
  readonly chargedAt?: number | undefined;
  /** Units that were really used; by default none. */
  readonly actual?: number | undefined;
}

/** Units that have come back, and when they were charged, in microseconds. */
export interface ReturnedUnits {
  readonly units: number;
  readonly chargedAt: number;
}

/**
 * Keeps units that are reserved at an estimate: they count at once, until they are settled or lapse. The fragment of the feature
 * does the same on Redis.
 */
export interface Estimates {
  /** The stored state of a counter, with what came back before its window ended, if that is over. */
  stored(limit: DecidingLimit, state: State, estimates: KeptEstimates, now: number): State;
  /** A counter that keeps any is opened: some of those that have lapsed come back, or all of them. */
  opened(counter: OpenCounter, all: boolean): void;
  /** How long until enough of them have lapsed for a cost to fit that does not, in microseconds; `Infinity` for never. */
  untilFits(counter: OpenCounter, cost: number): number;
  /** Keeps units that a counter was charged now. Returns their ticket. */
  reserved(counter: OpenCounter, units: number): number;
  /** Replaces kept units by those really used, once. Returns whether they were known. */
  settled(counter: OpenCounter, settlement: Settlement): boolean;
  /** A counter that keeps any is stored. Returns how long its state is needed for them, in microseconds. */
  saved(counter: OpenCounter): number;
  /**
   * The key of the sorted set of a counter with this key on Redis. Its scores are when they lapse; those at most 0 had lapsed when the
   * counter was opened, and have come back.
   */
  setOf(key: string): string;
  /** The units that come back when a member of such a set lapses, if any do. */
  returnedBy(member: string): ReturnedUnits | undefined;
}

/** Units that a counter counts until whoever holds them is done, or they lapse. */
export interface HeldNow {
  /** How many leases or reservations hold them. */
  readonly count: number;
  /** The units that these hold together; absent if there are too many to add up. */
  readonly units?: number;
  /** Milliseconds until the first of them lapses, unless it is renewed, released or settled before; absent if there are none. */
  readonly firstLapseMs?: number;
  /** Milliseconds until the last of them lapses; absent if there are none, or too many to add up. */
  readonly lastLapseMs?: number;
}
