// The capabilities that only some algorithms have, with parameters `P` and state `S`. Code checks for a capability, never for a name.

import type { Lease } from './leases.js';

/** The positions of reserved units. */
interface Tickets<P> {
  /**
   * The position of a ticket under other parameters, in the same way in which `open` converts the debt at `now`. A `share` of units that
   * were due all at once is available no later. The ticket is in ticks of `after`, the time in microseconds.
   */
  ticketUnder(
    before: P,
    after: P,
    ticket: number,
    now: number,
    share: number,
  ): { readonly ticket: number; readonly time: number };
  /** The time between two units at the full rate, in microseconds. */
  spacing(parameters: P): number;
}

/** Units can be taken from the future, as debt. */
export interface ReservationCapability<P, S> extends Tickets<P> {
  /** The tick from which nothing is owed to the future any more: the ticket of the units that were taken last. */
  debtClearedAt(parameters: P, state: S): number;
  /** Returns true if `cost` more units can be owed. */
  canOwe(parameters: P, state: S, cost: number): boolean;
  /** The microseconds between two times at which debt is paid off: less than `spacing`, unless several units come at once. */
  step(parameters: P): number;
}

/** Requests that fit may have to wait: they leave one after another. */
export interface QueueCapability<P, S> extends Tickets<P> {
  /** The time for which a request of `cost` units that fit has to wait. */
  delay(parameters: P, state: S, cost: number): number;
  /** The ticket that such a request would get: the tick at which its last unit leaves. */
  ticket(parameters: P, state: S, cost: number): number;
  /** The ticket of a request that is reduced by its last `units`. */
  ticketBefore(parameters: P, ticket: number, units: number): number;
}

/** Units are held until they are released. */
export interface LeasesCapability<P, S> {
  /** The ticket that a request of `cost` units that fit would get: the identifier of its lease. */
  ticket(parameters: P, state: S, cost: number): number;
  /** The leases that are held, in the order in which they end; `undefined` if they are not stored individually. */
  running?(state: S): readonly Lease[];
  /** Renews the lease of `units` with this `ticket`. Returns true if it was still held. */
  renew(parameters: P, state: S, units: number, ticket: number): boolean;
}

/** The held units of a counter. */
export interface HeldUnits {
  /** True if all known holds have been settled. */
  readonly isEmpty: boolean;
  /**
   * The units that were charged in a window and not refunded yet, and whose hold lapses before its end, for limits with the same `windows`.
   */
  unitsWithin(window: { readonly start: number; readonly end: number }, windows: number): number;
  /** Returns true if there are any such units. It examines a limited number of holds, and returns true if these leave it open. */
  isWithin(window: { readonly start: number; readonly end: number }, windows: number): boolean;
}

/** Units can be reserved as an estimate. They count immediately; the units actually used are settled later, in the window of the charge. */
export interface HoldsCapability<P, S> {
  /** Distinguishes the windows in which its units count from those of other options. */
  windows(parameters: P): string;
  /** The minimum time for which a hold is kept, in microseconds; by default until it lapses. */
  known?(parameters: P): number;
  /** Returns true if units charged at one time still count at another time, now or later. */
  counts(parameters: P, state: S, chargedAt: number, time: number): boolean;
  /** The maximum that can be counted, including units beyond the quota; by default 2^53 - 1. */
  most?(parameters: P): number;
  /** Changes the count of the finished window at a time, if it is still stored. */
  correct?(parameters: P, state: S, chargedAt: number, difference: number): void;
  /** Takes units used beyond those held, if that differs from the units that a check takes. */
  take?(parameters: P, state: S, units: number): void;
  /** A stored state. If its window is over, it includes the units that were refunded before the end of the window. */
  ended?(parameters: P, stored: S, now: number, holds: HeldUnits, windows: number): S;
  /**
   * Returns true if a finished window stays stored without the units that were refunded before its end. All lapsed holds are then released
   * at once.
   */
  keepsEnded?(state: S): boolean;
  /** The time for which a state must be kept because of holds, if that is longer. */
  keepFor?(parameters: P, state: S, holds: HeldUnits, windows: number): number;
}

/** Units can be shared among tenants. */
export interface SharingCapability<P> {
  /** A time span long enough to compare the usage of tenants, and the units that become available in it. */
  terms(parameters: P): SharingTerms;
}

/** The units that become available in a span of time. */
export interface SharingTerms {
  readonly units: number;
  /** Microseconds. */
  readonly span: number;
}

/** Units can be charged for future requests. */
export interface PrefetchCapability<P> {
  /**
   * Parameters with which units may be used up to `ttl` microseconds after they were charged, while no period has more usage than the given
   * parameters allow; `undefined` if there are none.
   */
  parameters(parameters: P, ttl: number): P | undefined;
  /** Units must be used before the end of the window in which they were charged. */
  readonly endsWithWindow: boolean;
}

/**
 * The number of units that fit at once differs between windows by more than the quota. `fits` and `retryAfter` are then called with any
 * cost.
 */
export interface VaryingCapability<P, S> {
  /** The maximum number of units that fit at once in the current window. */
  quota(parameters: P, state: S): number;
  /** Returns true if credits can be added. */
  takesCredits(parameters: P): boolean;
  /** The remaining credits; `undefined` for limits without credits. */
  credits(parameters: P, state: S): number | undefined;
  /** The credits in the form in which they are stored: based on the rate with which the counter was last charged. */
  balance(state: S): number;
  /** Sets the remaining credits once the state is open. */
  bring(parameters: P, state: S, balance: number): void;
  /**
   * Adds credits. A negative number withdraws that number, or all remaining ones; 0 recomputes the balance with the current rate.
   */
  credit(parameters: P, state: S, units: number): void;
}

/** The load of the process. */
export interface ProcessLoad {
  /** The current delay of the event loop, in microseconds. */
  readonly eventLoopDelay: number;
  /** The share of the processors that the process uses: 0 to 1. */
  readonly cpu: number;
}

/** A request to an adaptive limit. */
export interface Question {
  readonly cost: number;
  readonly priority: 'critical' | 'default' | 'sheddable';
  readonly load: ProcessLoad;
  /** True if it only reads. */
  readonly peek: boolean;
}

/**
 * The end of the work that held units: it ended well; by a timeout or an overload downstream; because its client left; or in a way that
 * reveals nothing about load.
 */
export type LeaseEnd = 'completed' | 'dropped' | 'aborted' | 'ignored';

/** The limit is learned from the requests that were let in. It is only known in one process, and no script counts it. */
export interface AdaptingCapability<P, S> {
  /** The maximum number of units that fit now. */
  quota(parameters: P, state: S): number;
  /** The units in flight, as decisions report them. */
  inFlight(parameters: P, state: S): number;
  /** Called with the request before any other method. */
  asked(parameters: P, state: S, question: Question): void;
  /** Releases the units of a ticket, and learns from their usage. */
  ended(parameters: P, state: S, ticket: number, end: LeaseEnd): void;
  /** The HTTP status of a rejection. */
  status(parameters: P): number;
}
