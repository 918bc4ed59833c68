// What only some algorithms can do, with parameters `P` and state `S`. Code checks for the capability, never for a name.

import type { Lease } from './leases.js';

/** The positions of reserved units. */
interface Tickets<P> {
  /**
   * The position of a ticket under other parameters, as `open` converts what is owed `now`. A `share` of units that were to come
   * all at once is available no later. The ticket is in ticks of `after`, the time in microseconds.
   */
  ticketUnder(
    before: P,
    after: P,
    ticket: number,
    now: number,
    share: number,
  ): { readonly ticket: number; readonly time: number };
  /** The time between two units, in microseconds: that of the full rate. */
  spacing(parameters: P): number;
}

/** Units can be taken from the future, as debt. */
export interface ReservationCapability<P, S> extends Tickets<P> {
  /** The tick at which nothing is owed to the future any more: the ticket of the units that were taken last. */
  debtClearedAt(parameters: P, state: S): number;
  /** Whether `cost` more units can be owed. */
  canOwe(parameters: P, state: S, cost: number): boolean;
  /** Microseconds between two times at which debt is paid back: less than `spacing`, unless several units come at once. */
  step(parameters: P): number;
}

/** Requests that fit may have to wait: they leave one after another. */
export interface QueueCapability<P, S> extends Tickets<P> {
  /** How long a request of `cost` units that fit has to wait. */
  delay(parameters: P, state: S, cost: number): number;
  /** The ticket that such a request would get: the tick at which its last unit leaves. */
  ticket(parameters: P, state: S, cost: number): number;
  /** The ticket of a request without its last `units`. */
  ticketBefore(parameters: P, ticket: number, units: number): number;
}

/** Units are held until they are released. */
export interface LeasesCapability<P, S> {
  /** The ticket that a request of `cost` units that fit would get: the identifier of its lease. */
  ticket(parameters: P, state: S, cost: number): number;
  /** The leases that are held, in the order in which they end; absent if these are not kept one by one. */
  running?(state: S): readonly Lease[];
  /** Renews the lease of `units` with this `ticket`. Returns whether it was still held. */
  renew(parameters: P, state: S, units: number, ticket: number): boolean;
}

/** The held units of a counter. */
export interface HeldUnits {
  /** Whether there are no known holds that have not been settled. */
  readonly isEmpty: boolean;
  /**
   * The units, not given back yet, that were charged in a window and come back before it ends, by limits with the same `windows`.
   */
  unitsWithin(window: { readonly start: number; readonly end: number }, windows: number): number;
  /** Whether there are any such units. It examines a limited number of holds, and returns true if they are not among these. */
  isWithin(window: { readonly start: number; readonly end: number }, windows: number): boolean;
}

/**
 * Units can be reserved at an estimate: they count at once, and what was really used is settled later, where they were charged.
 */
export interface HoldsCapability<P, S> {
  /** Distinguishes the windows in which its units count from those of other options. */
  windows(parameters: P): string;
  /** For how long a hold is remembered at least, in microseconds; by default until it lapses. */
  known?(parameters: P): number;
  /** Whether units charged at one time still count at another, now or later. */
  counts(parameters: P, state: S, chargedAt: number, time: number): boolean;
  /** The most that can be counted, beyond the quota, too; by default 2^53 - 1. */
  most?(parameters: P): number;
  /** Changes the count of the finished window at a time, if it is still kept. */
  correct?(parameters: P, state: S, chargedAt: number, difference: number): void;
  /** Takes units used beyond those held, if that differs from what a check takes. */
  take?(parameters: P, state: S, units: number): void;
  /** A stored state with the units that came back before its window ended, if that is over. */
  ended?(parameters: P, stored: S, now: number, holds: HeldUnits, windows: number): S;
  /**
   * True if a finished window stays stored without the units that came back before its end. Then all lapsed holds are released at
   * once.
   */
  keepsEnded?(state: S): boolean;
  /** How long a state must be kept because of holds, if that is longer. */
  keepFor?(parameters: P, state: S, holds: HeldUnits, windows: number): number;
}

/** Units can be shared among tenants. */
export interface SharingCapability<P> {
  /** A time long enough to compare how much tenants take, and the units that come back in it. */
  terms(parameters: P): SharingTerms;
}

/** The units that come back in a span of time. */
export interface SharingTerms {
  readonly units: number;
  /** Microseconds. */
  readonly span: number;
}

/** Units can be charged for future requests. */
export interface PrefetchCapability<P> {
  /**
   * Parameters under which units may be used up to `ttl` microseconds after they were charged, while no period has more use than
   * the given parameters allow; `undefined` if there are none.
   */
  parameters(parameters: P, ttl: number): P | undefined;
  /** Units must be used before the window ends in which they were charged. */
  readonly endsWithWindow: boolean;
}

/**
 * How much fits at once differs between windows by more than the quota. `fits` and `retryAfter` are then called with any cost.
 */
export interface VaryingCapability<P, S> {
  /** The most units that fit at once in the current window. */
  quota(parameters: P, state: S): number;
  /** Whether credits can be added. */
  takesCredits(parameters: P): boolean;
  /** The credits left; `undefined` for limits without credits. */
  credits(parameters: P, state: S): number | undefined;
  /** The credits in the form in which they are stored: by the rate under which the counter was last charged. */
  balance(state: S): number;
  /** Takes the credits left, once the state is open. */
  bring(parameters: P, state: S, balance: number): void;
  /**
   * Adds credits. A negative number takes back that many, or what is left; 0 changes the balance to what is left under the present
   * rate.
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

/** Who asks an adaptive limit. */
export interface Question {
  readonly cost: number;
  readonly priority: 'critical' | 'default' | 'sheddable';
  readonly load: ProcessLoad;
  /** Whether it only looks. */
  readonly peek: boolean;
}

/**
 * How the work that held units ended: well; by a timeout or an overload downstream; because its client left; or in a way that
 * shows nothing about load.
 */
export type LeaseEnd = 'completed' | 'dropped' | 'aborted' | 'ignored';

/** How much fits is learnt from what was let in. It is known in one process only, and no script counts it. */
export interface AdaptingCapability<P, S> {
  /** The most units that fit now. */
  quota(parameters: P, state: S): number;
  /** The units in flight, as decisions report them. */
  inFlight(parameters: P, state: S): number;
  /** Called with the request before anything is asked about what fits. */
  asked(parameters: P, state: S, question: Question): void;
  /** Releases the units of a ticket, and learns from how they were used. */
  ended(parameters: P, state: S, ticket: number, end: LeaseEnd): void;
  /** The HTTP status of a refusal. */
  status(parameters: P): number;
}
