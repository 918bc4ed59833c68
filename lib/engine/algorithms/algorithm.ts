import type {
  AdaptingCapability,
  HoldsCapability,
  LeasesCapability,
  PrefetchCapability,
  QueueCapability,
  ReservationCapability,
  SharingCapability,
  VaryingCapability,
} from './capabilities.js';
import type { OptionRows } from '../options/option-row.js';

export type { LeaseEnd, ProcessLoad } from './capabilities.js';

/**
 * The current state of a limit's counter for one key: read from a store, brought up to the present, and changed in place.
 * Algorithms add their own members.
 */
export interface State {
  /** Now, in whole microseconds by the store's clock. */
  now: number;
  /**
   * True if the stored state was written with other parameters, or before the clock was set back by an interval or more, and has been
   * converted. In that case it is written even if the check is rejected; otherwise its waits would restart with every rejection.
   */
  migrated: boolean;
  /** The largest quota with which it was charged or rejected, for algorithms that have to fill a quota that grows. */
  burst?: number;
}

/** The parameters that every algorithm reads from the options of a limit. */
export interface Parameters {
  /** The maximum number of units that can be allowed at once. */
  readonly quota: number;
  /** Units of the same counter that are reserved for others, in addition to the quota. */
  readonly kept?: number;
}

/** An argument of the script: a number, or a text in JSON. */
export type ScriptValue = number | string;

/** A finished or current window of a limit. */
export interface WindowCount {
  /** The start of the window, in milliseconds since the epoch. */
  readonly start: number;
  /** The end of the window, in milliseconds since the epoch. */
  readonly end: number;
  /** The number of units that were allowed in it. */
  readonly count: number;
}

/**
 * One algorithm: reads its options, and computes its state. It has no clock and does no I/O; its counterpart in `lua/algorithms/` does the
 * same with the same numbers. Times and waits are whole microseconds.
 */
export interface Algorithm<O = never, P extends Parameters = Parameters, S extends State = State> {
  /** The value of `algo`. */
  readonly name: string;
  /** Two letters at the end of each of its Redis keys, so that one algorithm never reads another's state. */
  readonly code: string;
  /** The suffixes of the keys that its script fragment uses in addition to the counter's own key. */
  readonly extraKeys?: readonly string[];
  /** The suffixes of further keys, which it only uses with certain parameters. */
  moreKeys?(parameters: P): readonly string[];
  /** Its own options. */
  readonly options: OptionRows;
  /** The name of its fragment in `lua/algorithms/`, if it differs. */
  readonly script?: string;
  /** Algorithms that replace it if an option is set, by the name of the option. They have their own states. */
  readonly variants?: Readonly<Record<string, Algorithm>>;
  /**
   * The algorithm that replaces it if a function of the request determines the start of windows, but was not called. It has the same state.
   */
  readonly following?: unknown;
  /** The prefix of its name in a program of the script. */
  readonly scriptPrefix?: string;

  /** Reads and checks its options. Throws `RateLimitConfigError`. */
  compile(options: O, location: string): P;
  /** The default `name` of a limit: `algo:rate/interval`. */
  defaultName(options: O): string;
  /** The options of a limit that allows a part of this one, at least one unit: the part for one of several instances. */
  share(options: O, part: number): O;
  /** The length of its window at `now`. */
  window(parameters: P, now: number): number;
  /**
   * The shortest time after which its quota always fits again: if no period of that length has more units, all are allowed. By default, its
   * window.
   */
  pace?(parameters: P): number;
  /** The values that the script needs, in the order in which its fragment reads them. */
  scriptParameters(parameters: P, now: number): ScriptValue[];
  /** The amount of work that a check causes in the script, in checks of a plain counter; by default 1. */
  work?(parameters: P): number;

  /** The state at `now`. Does not change `stored`. */
  open(parameters: P, stored: S | undefined, now: number): S;
  /** The same, but overwrites `spare`: another state, saved or not, that is no longer needed. */
  reopen?(parameters: P, stored: S | undefined, now: number, spare: S): void;
  /** Returns true if `cost` units fit now. Only called for costs up to the quota. */
  fits(parameters: P, state: S, cost: number): boolean;
  /** Charges `cost` units, which fit. */
  take(parameters: P, state: S, cost: number): void;
  /**
   * Refunds `units`, at most those that were taken. `ticket` is the ticket of these units: units reserved after them keep their times.
   * `chargedAt` is the time of the charge: units that no longer count are not refunded.
   */
  give(parameters: P, state: S, units: number, ticket?: number, chargedAt?: number): void;
  /** The state to store. */
  save(parameters: P, state: S): S;

  /** The estimated memory of the lists of a stored state in process, in bytes; by default 0. */
  bytes?(state: S): number;

  /** The parameters with another quota, for algorithms in which more than the quota depends on it. */
  withQuota?(parameters: P, quota: number): P;
  /** Scales the usage from the quota `from` to the quota `to`; by default in whole units. */
  scaleUsed?(parameters: P, state: S, to: number, from: number): void;

  /** The whole units that would fit now; negative if more was charged than fits. */
  remaining(parameters: P, state: S): number;
  /** The same for all requests together, if `remaining` depends on the request. */
  remainingForAll?(parameters: P, state: S): number;
  /**
   * The shortest wait after which `cost` units fit that do not fit now. If windows vary, `returned` units are refunded within the current
   * one.
   */
  retryAfter(parameters: P, state: S, cost: number, returned?: number): number;
  /** The wait until the state equals a fresh one. */
  resetAfter(parameters: P, state: S): number;
  /** The time for which the stored state must be kept; by default `resetAfter`. */
  keepFor?(parameters: P, state: S): number;
  /** Records that `cost` units, at most the quota, were rejected. Returns true if the state has to be stored. */
  refuse?(parameters: P, state: S, cost: number): boolean;
  /** Its units can be shared among tenants. */
  readonly sharing?: SharingCapability<P>;
  /** Its units can be reserved before they are available. */
  readonly reservation?: ReservationCapability<P, S>;
  /** Its requests wait in a queue, which they leave one after another. */
  readonly queue?: QueueCapability<P, S>;
  /** Its units are held until they are released. */
  readonly leases?: LeasesCapability<P, S>;
  /** Its units can be taken in advance for several requests, and used a little later. */
  readonly prefetch?: PrefetchCapability<P>;
  /** The same for units that a region takes in advance, if they cannot be prefetched. */
  readonly granting?: PrefetchCapability<P>;
  /** The script ends each decision with a number that a layer of the store reads. */
  readonly notes?: true;
  /** Its units may be carried over to later windows (`CalendarWindowState`), or be prepaid. `code`: its code with such units. */
  readonly planning?: { readonly code: string };
  /** The number of units that fit differs between windows. */
  readonly varying?: VaryingCapability<P, S>;
  /** Its units can be held until they are settled, for limits with a `hold`. */
  readonly holds?: HoldsCapability<P, S>;
  /** Its counts do not depend on the rate, so one counter shows the remaining units for a smaller rate and for a larger one. */
  readonly borrowing?: true;
  /** It can count units beyond its quota, so that rejected attempts also count. */
  readonly beyond?: true;
  /**
   * Some units may weigh more than others, because it counts the weight that is owed (`ArrivalState`). `code`: its code with such units.
   */
  readonly warming?: { readonly code: string };
  /** It learns its limit. */
  readonly adapting?: AdaptingCapability<P, S>;
  /** The windows or slices that can still be read, the newest first. */
  history?(parameters: P, state: S): WindowCount[];
}

/** Returns true if units get a ticket: the time at which a request leaves the queue, or the identifier of a lease. */
export function issuesTickets({ queue, leases }: Pick<Algorithm, 'queue' | 'leases'>): boolean {
  return queue !== undefined || leases !== undefined;
}

/** Replaces algorithms if an option is set, with its own state. */
export interface Variant {
  /** Any of these options selects it. Algorithms that support the variant also have these options. */
  readonly options: OptionRows;
  /** The variant of an algorithm; `undefined` if the algorithm doesn't support it. */
  of(algorithm: Algorithm): Algorithm | undefined;
}

/**
 * The classes that the state of a counter may contain, in addition to numbers, lists and plain objects. Stores write them by these names.
 */
export const KEPT_CLASSES = new Map<string, new () => object>();
