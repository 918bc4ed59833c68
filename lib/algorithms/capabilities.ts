// What only some algorithms can do, of their parameters `P` and their state `S`. Code asks whether it is there, and never for a name.

/** Where reserved units stand. */
interface Tickets<P> {
  /**
   * Where a ticket stands under other parameters, as `open` translates what is owed `now`. Of units that were to be there all at
   * once, a `share` is there no later. The ticket is in ticks of `after`, the time in microseconds.
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
  /** Whether `cost` units more can be owed. */
  canBorrow(parameters: P, state: S, cost: number): boolean;
  /** Microseconds between two moments at which owed units are paid back: less than `spacing` unless several are at once. */
  step(parameters: P): number;
}

/** Requests that fit may have to be held: they leave one after another. */
export interface QueueCapability<P, S> extends Tickets<P> {
  /** How long a request of `cost` units, which fit, has to be held. */
  delay(parameters: P, state: S, cost: number): number;
  /** The ticket that such a request would get: the tick at which its last unit leaves. */
  ticket(parameters: P, state: S, cost: number): number;
  /** The ticket of a request without its last `units`. */
  ticketBefore(parameters: P, ticket: number, units: number): number;
}

/** Units are held until they are released. */
export interface HoldingCapability<P, S> {
  /** The ticket that a request of `cost` units, which fit, would get: the identifier of its lease. */
  ticket(parameters: P, state: S, cost: number): number;
  /** Holds anew what a request of `units` holds since it got its `ticket`. Says whether it still held it. */
  renew(parameters: P, state: S, units: number, ticket: number): boolean;
}

/** What is held of a counter. */
export interface HeldUnits {
  /** Nothing is known that was held and not settled. */
  readonly isEmpty: boolean;
  /** The units, not given back yet, that were charged in a window and come back before it ends, by limits of the same `HoldTerms.windows`. */
  unitsWithin(window: { readonly start: number; readonly end: number }, windows: number): number;
  /** Whether there are such units. It looks at so many holds only, and says so where they are not among these. */
  isWithin(window: { readonly start: number; readonly end: number }, windows: number): boolean;
}

/** Units can be reserved at an estimate: they count at once, and what was really used is settled later, where they were charged. */
export interface HoldsCapability<P, S> {
  /** Whether units that were charged at a time still count at another one, now or later. */
  counts(parameters: P, state: S, chargedAt: number, time: number): boolean;
  /** The most that can be counted, beyond the quota, too; 2^53 - 1 unless given. */
  most?(parameters: P): number;
  /** Changes the count of the finished window of a time, if it is still kept. */
  correct?(parameters: P, state: S, chargedAt: number, difference: number): void;
  /** Takes units that were used beyond those held, where that differs from what a check takes. */
  take?(parameters: P, state: S, units: number): void;
  /** A stored state with the units that came back before its window ended, if that is over. */
  ended?(parameters: P, stored: S, now: number, holds: HeldUnits): S;
  /** How long a state has to be kept because of what is held, where that is longer than else. */
  keepFor?(parameters: P, state: S, holds: HeldUnits): number;
}

/** Units can be shared among tenants. */
export interface SharingCapability<P> {
  /** A time that is long enough to tell who takes how much, and the units that come back in it; nothing if it cannot be told. */
  terms(parameters: P): SharingTerms | undefined;
}

/** Units that come back in a time. */
export interface SharingTerms {
  readonly units: number;
  /** Microseconds. */
  readonly span: number;
}

/** Units can be charged for requests to come. */
export interface PrefetchCapability<P> {
  /**
   * Parameters under which units may be used up to `ttl` microseconds after they were charged, with no more used in any
   * stretch of time than the given parameters allow; nothing if there are none.
   */
  parameters(parameters: P, ttl: number): P | undefined;
  /** Units have to be used before the window ends in which they were charged. */
  readonly endsWithWindow: boolean;
}

/** How much fits at once differs from window to window, by more than the quota. Then `fits` and `retryAfter` are asked of any cost. */
export interface VaryingCapability<P, S> {
  /** The most units that fit at once in the window that runs. */
  quota(parameters: P, state: S): number;
  /** The credits that are left; nothing of limits that take none. */
  credits(parameters: P, state: S): number | undefined;
  /** The same as it is stored: by the rate under which was charged last. */
  balance(state: S): number;
  /** Is told how many credits are left, once its state is open. */
  bring(parameters: P, state: S, balance: number): void;
  /** Adds credits; less than none takes back what is left of so many. */
  credit(parameters: P, state: S, units: number): void;
}

/** How busy the process is. */
export interface ProcessLoad {
  /** How late the event loop is now, in microseconds. */
  readonly eventLoopDelay: number;
  /** The share of the processors that the process uses: 0 to 1. */
  readonly cpu: number;
}

/** Who asks a limit that adapts. */
export interface Question {
  readonly cost: number;
  readonly priority: 'critical' | 'default' | 'sheddable';
  readonly load: ProcessLoad;
  /** Only looks. */
  readonly peek: boolean;
}

/**
 * How what was held ended: well; by a timeout or an overload farther on; by a client that left; or in a way that says nothing of how
 * busy anything is.
 */
export type LeaseEnd = 'completed' | 'dropped' | 'aborted' | 'ignored';

/** How much fits is learnt from what was let in. It is known in one process only, and no script counts it. */
export interface AdaptingCapability<P, S> {
  /** The most units that fit now. */
  quota(parameters: P, state: S): number;
  /** The units in flight, as a decision tells them. */
  inFlight(parameters: P, state: S): number;
  /** Is told who asks, before it is asked what fits. */
  asked(parameters: P, state: S, question: Question): void;
  /** Releases what holds a ticket, and learns from it. */
  ended(parameters: P, state: S, ticket: number, end: LeaseEnd): void;
  /** The HTTP status of a refusal. */
  status(parameters: P): number;
}
