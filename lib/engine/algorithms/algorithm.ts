import type {
  AdaptingCapability,
  LeasesCapability,
  HoldsCapability,
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
   * The stored state was made under other parameters, or before the clock was set back by an interval or more, and has been
   * converted. It is then written even if the check is refused; otherwise its waits would restart with every refusal.
   */
  migrated: boolean;
  /**
   * The largest quota under which it was charged or refused, for algorithms in which a quota that grows has to be filled first.
   */
  burst?: number;
}

/** What every algorithm knows about a limit once its options have been read. */
export interface Parameters {
  /** The most units that can be allowed at once. */
  readonly quota: number;
  /** Units of the same counter that are kept for others, in addition to the quota. */
  readonly kept?: number;
}

/** What the script is given: a number, or a text as JSON has it. */
export type ScriptValue = number | string;

/** A finished or current window of a limit that counts by the calendar. */
export interface WindowCount {
  /** When the window began, in milliseconds since the epoch. */
  readonly start: number;
  /** When it ends or ended, in milliseconds since the epoch. */
  readonly end: number;
  /** Units that were allowed in it. */
  readonly count: number;
}

/**
 * One algorithm: how its options are read, and how its state changes. It has no clock and does no I/O; its twin in
 * `lua/algorithms/` does the same with the same numbers. Times and waits are whole microseconds.
 */
export interface Algorithm<O = never, P extends Parameters = Parameters, S extends State = State> {
  /** The value of `algo`. */
  readonly name: string;
  /** Two letters that end each of its Redis keys, so that one algorithm never reads another's state. */
  readonly code: string;
  /** The suffixes of the keys that its script fragment uses besides the counter's own. */
  readonly extraKeys?: readonly string[];
  /** The suffixes of further keys, which it uses by some parameters only. */
  moreKeys?(parameters: P): readonly string[];
  /** Its own options. */
  readonly options: OptionRows;
  /** The name of its fragment in `lua/algorithms/`, if it differs. */
  readonly script?: string;
  /** Algorithms that replace it if an option is given, by the name of the option. They have states of their own. */
  readonly variants?: Readonly<Record<string, Algorithm>>;
  /**
   * The algorithm that replaces it if a function of the request sets where windows begin, but was not called. It has the same
   * state.
   */
  readonly following?: unknown;
  /** The prefix of its name in a program of the script. */
  readonly scriptPrefix?: string;

  /** Reads and checks its options. Throws `RateLimitConfigError`. */
  compile(options: O, location: string): P;
  /** The default `name` of a limit: `algo:rate/interval`. */
  defaultName(options: O): string;
  /** The options of a limit that allows a part of this one, at least one unit: for one of several instances. */
  share(options: O, part: number): O;
  /** The length of its window at `now`. */
  window(parameters: P, now: number): number;
  /**
   * The shortest time in which its quota always fits: if every period of that length has no more units, all are allowed. By
   * default, its window.
   */
  pace?(parameters: P): number;
  /** The values that the script needs, in the order in which its fragment reads them. */
  scriptParameters(parameters: P, now: number): ScriptValue[];
  /** How much work a check is for the script, in checks of a plain counter; by default 1. */
  work?(parameters: P): number;

  /** The state as of now. Does not change `stored`. */
  open(parameters: P, stored: S | undefined, now: number): S;
  /** The same, but written over `spare`: another state, saved or not, that is no longer needed. */
  reopen?(parameters: P, stored: S | undefined, now: number, spare: S): void;
  /** Whether `cost` units fit now. Called only for costs up to the quota. */
  fits(parameters: P, state: S, cost: number): boolean;
  /** Charges `cost` units, which fit. */
  take(parameters: P, state: S, cost: number): void;
  /**
   * Gives `units` back, at most those that were taken. `ticket` is the ticket that they got: units reserved behind them stay
   * reserved, whenever they come back. `chargedAt` is when they were taken: units that no longer count are not given back again.
   */
  give(parameters: P, state: S, units: number, ticket?: number, chargedAt?: number): void;
  /** The state to store. */
  save(parameters: P, state: S): S;

  /** The bytes that the lists of a stored state take in process, by estimate; by default 0. */
  bytes?(state: S): number;

  /** The same parameters with another quota, for algorithms in which more than the quota depends on it. */
  withQuota?(parameters: P, quota: number): P;
  /** Scales use from the quota `from` to the quota `to`; by default in whole units. */
  scaleUsed?(parameters: P, state: S, to: number, from: number): void;

  /** The whole units that would fit now; negative if more was charged than fits. */
  remaining(parameters: P, state: S): number;
  /** The same for all requests together, if `remaining` depends on who asks. */
  remainingForAll?(parameters: P, state: S): number;
  /**
   * The shortest wait after which `cost` units fit that do not fit now; if windows vary, `returned` units come back in this one.
   */
  retryAfter(parameters: P, state: S, cost: number, returned?: number): number;
  /** The wait until the state equals a fresh one. */
  resetAfter(parameters: P, state: S): number;
  /** How long the stored state must be kept; by default `resetAfter`. */
  keepFor?(parameters: P, state: S): number;
  /** Notes that `cost` units, at most the quota, were refused. Returns whether there is anything to store. */
  refuse?(parameters: P, state: S, cost: number): boolean;
  /** Its units can be shared among tenants. */
  readonly sharing?: SharingCapability<P>;
  /** Its units can be reserved before they are available. */
  readonly reservation?: ReservationCapability<P, S>;
  /** Its requests wait in a queue, which they leave one after another. */
  readonly queue?: QueueCapability<P, S>;
  /** Its units are held until they are released. */
  readonly leases?: LeasesCapability<P, S>;
  /** Its units can be taken for several future requests, and used a little later. */
  readonly prefetch?: PrefetchCapability<P>;
  /** The same for units that a region takes in advance, if they cannot be prefetched. */
  readonly granting?: PrefetchCapability<P>;
  /** The script ends each decision with a number that a layer of the store reads. */
  readonly notes?: true;
  /** Units may move into later windows of it (`CalendarWindowState`), or be prepaid: its code with such units. */
  readonly planning?: { readonly code: string };
  /** More may fit in some windows than in others. */
  readonly varying?: VaryingCapability<P, S>;
  /** Its units can be held until they are settled, for limits with a `hold`. */
  readonly holds?: HoldsCapability<P, S>;
  /** Its counts do not depend on the rate: one counter shows what is left under a smaller rate and under a larger one. */
  readonly borrowing?: true;
  /** It can count units beyond its quota, so that refused tries count, too. */
  readonly beyond?: true;
  /** Some units may weigh more than others, as it counts the weight that is owed (`ArrivalState`): its code with such units. */
  readonly warming?: { readonly code: string };
  /** It learns how much fits. */
  readonly adapting?: AdaptingCapability<P, S>;
  /** The windows or slices that can still be read, the newest first. */
  history?(parameters: P, state: S): WindowCount[];
}

/** Whether units get a ticket: the time at which a request leaves the queue, or the identifier of a lease. */
export function issuesTickets({ queue, leases }: Pick<Algorithm, 'queue' | 'leases'>): boolean {
  return queue !== undefined || leases !== undefined;
}
