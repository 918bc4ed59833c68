import type {
  AdaptingCapability,
  HoldingCapability,
  HoldsCapability,
  PrefetchCapability,
  QueueCapability,
  ReservationCapability,
  SharingCapability,
  VaryingCapability,
} from './capabilities.js';
import type { HoldTerms } from './hold-terms.js';

export type { LeaseEnd, ProcessLoad } from './capabilities.js';

/**
 * A limit's counter for one key, as it is now: read from a store, brought up to the present, and changed in place.
 * What it holds besides is the algorithm's own.
 */
export interface State {
  /** Now, in whole microseconds, on the store's clock. */
  now: number;
  /**
   * The stored state was made under other parameters, or before the clock was set back by an interval or more, and has
   * been translated. It is then written even if the check is refused, or its waits would start anew with every refusal.
   */
  migrated: boolean;
  /** The largest quota that it was charged or refused under, where a quota that grows has to be filled first. */
  burst?: number;
}

/** What every algorithm knows about a limit once its options have been read. */
export interface Parameters {
  /** The most units that can be allowed at once. */
  readonly quota: number;
  /** Units of the same counter that are kept for others, besides the quota. */
  readonly kept?: number;
  /** How units are held that are reserved; nothing if they cannot be. */
  readonly hold?: HoldTerms | undefined;
}

/** A finished or running window of a limit that counts by the calendar. */
export interface WindowCount {
  /** When the window began, in milliseconds since the epoch. */
  readonly start: number;
  /** When it ends or ended, in milliseconds since the epoch. */
  readonly end: number;
  /** Units that were allowed in it. */
  readonly count: number;
}

/**
 * One algorithm: how its options are read and how its state changes. It has no clock and does no input or output; its twin
 * in `lua/algorithms/` does the same with the same numbers. Times and waits are whole microseconds.
 */
export interface Algorithm<O = never, P extends Parameters = Parameters, S extends State = State> {
  /** The value of `algo`. */
  readonly name: string;
  /** Two letters that end each of its Redis keys, so that one algorithm never reads another's state. */
  readonly code: string;
  /** What ends the keys that its script fragment uses besides the counter's own. */
  readonly extraKeys?: readonly string[];
  /** The options that are its own. */
  readonly options: readonly string[];
  /** The fragment of `lua/algorithms/` that does the same, if it has another name. */
  readonly script?: string;
  /** What counts in its place where an option is given, by the name of the option. Its state is another one. */
  readonly variants?: Readonly<Record<string, unknown>>;
  /** What counts in its place where a function says by the request where its windows begin, and nobody asked it. Its state is the same. */
  readonly following?: unknown;
  /** What stands before its name in a program of the script. */
  readonly scriptPrefix?: string;

  /** Reads and checks its options. Throws `RateLimitConfigError`. */
  compile(options: O, location: string): P;
  /** The name of a limit whose `name` was left out: `algo:rate/interval`. */
  defaultName(options: O): string;
  /** The options of a limit that allows a part of this one, at least one unit: what one of several instances may allow. */
  share(options: O, part: number): O;
  /** The length of its window at `now`. */
  window(parameters: P, now: number): number;
  /**
   * The shortest time in which its quota always fits: requests of no more units in any stretch that long are all allowed. Its window
   * unless given.
   */
  pace?(parameters: P): number;
  /** The numbers that the script needs, in the order in which its fragment reads them. */
  scriptParameters(parameters: P, now: number): number[];
  /** How much a check asks of the script, in checks of a plain counter: 1 unless given. */
  work?(parameters: P): number;

  /** The state as of now. Leaves `stored` as it was. */
  open(parameters: P, stored: S | undefined, now: number): S;
  /** The same, written over `spare`: another state, saved or not, which nothing needs any more. */
  reopen?(parameters: P, stored: S | undefined, now: number, spare: S): void;
  /** Whether `cost` units fit now. Asked only for costs up to the quota. */
  fits(parameters: P, state: S, cost: number): boolean;
  /** Charges `cost` units, which fit. */
  take(parameters: P, state: S, cost: number): void;
  /**
   * Gives `units` back, never more than were taken. `ticket` is what they were given when they were taken: units
   * that were reserved behind them stay reserved, whenever they come back. `chargedAt` is the time when they were taken: those that
   * count no longer by now are not given back once more.
   */
  give(parameters: P, state: S, units: number, ticket?: number, chargedAt?: number): void;
  /** What has to be stored. */
  save(parameters: P, state: S): S;

  /** Bytes that the lists of a stored state take in process, roughly; none unless given. */
  bytes?(state: S): number;

  /** The same parameters with another quota, if more than the quota depends on it. */
  withQuota?(parameters: P, quota: number): P;
  /** Has as large a part of the quota `to` used as was used of the quota `from`; in whole units unless given. */
  scaleUsed?(parameters: P, state: S, to: number, from: number): void;

  /** The whole units that would fit now; less than none if more was charged than fits. */
  remaining(parameters: P, state: S): number;
  /** The same whoever asks, where `remaining` depends on that. */
  remainingForAll?(parameters: P, state: S): number;
  /** The shortest wait after which `cost` units fit, which do not fit now; where windows vary, if so many units come back in this one. */
  retryAfter(parameters: P, state: S, cost: number, returned?: number): number;
  /** The wait until the state equals a fresh one. */
  resetAfter(parameters: P, state: S): number;
  /** How long the stored state has to be kept; `resetAfter` unless given. */
  keepFor?(parameters: P, state: S): number;
  /** Notes that `cost` units, at most the quota, were refused. Says whether there is anything to store. */
  refuse?(parameters: P, state: S, cost: number): boolean;
  /** What allows its units to be shared among tenants. */
  readonly sharing?: SharingCapability<P>;
  /** What allows units to be reserved before they are there. */
  readonly reservation?: ReservationCapability<P, S>;
  /** What makes requests wait in a queue, which they leave one after another. */
  readonly queue?: QueueCapability<P, S>;
  /** What is held until it is released. */
  readonly holding?: HoldingCapability<P, S>;
  /** What allows units to be taken for several requests to come, and used a little later. */
  readonly prefetch?: PrefetchCapability<P>;
  /** What lets more fit in some windows than in others. */
  readonly varying?: VaryingCapability<P, S>;
  /** What allows units to be held until they are settled, by limits with a `hold`. */
  readonly holds?: HoldsCapability<P, S>;
  /** What it counts does not depend on its rate: one counter tells what is left under a smaller rate and under a larger one. */
  readonly borrowing?: true;
  /** What learns how much fits. */
  readonly adapting?: AdaptingCapability<P, S>;
  /** The windows or slices that can still be read, the newest first. */
  history?(parameters: P, state: S): WindowCount[];
}

/** Whether what is taken gets a ticket: the time at which it leaves a queue, or the identifier of what is held. */
export function issuesTickets({ queue, holding }: Pick<Algorithm, 'queue' | 'holding'>): boolean {
  return queue !== undefined || holding !== undefined;
}
