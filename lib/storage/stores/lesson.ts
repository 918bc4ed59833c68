/** What an upstream reported about the limit that a counter follows, and what is in flight to it. */
export interface Lesson {
  /**
   * The units that the upstream has left.
   * @default unknown
   */
  readonly remaining?: number | undefined;
  /**
   * Milliseconds from now until all units are back.
   * @default unknown
   */
  readonly resetAfterMs?: number | undefined;
  /** Milliseconds since the call was sent whose answer this is. */
  readonly ageMs: number;
  /**
   * Distinguishes the windows of the upstream's limits: a whole number >= 0.
   * @default there is no window: units come back gradually
   */
  readonly window?: number | undefined;
  /**
   * The quota of the upstream's window, a whole number >= 1: the most that the next window has.
   * @default unknown
   */
  readonly quota?: number | undefined;
  /** The units that this instance has in flight: charged, but not yet answered by the upstream. */
  readonly inFlight: number;
  /**
   * The units that this instance needs next; others already count them as in flight.
   * @default 0
   */
  readonly asking?: number | undefined;
  /** A number that identifies this instance: a whole number >= 0. */
  readonly instance: number;
  /**
   * Milliseconds from now for which the upstream refuses all calls.
   * @default it does not refuse them
   */
  readonly blockMs?: number | undefined;
  /**
   * What was learnt of the rate, for a limit that has none of its own; `learn` then returns the rate.
   * @default the limit has a rate
   */
  readonly rate?: RateLesson | undefined;
}

/** What was learnt about the rate that an upstream allows. */
export interface RateLesson {
  /**
   * The upstream's quota, a whole number >= 1.
   * @default unknown
   */
  readonly quota?: number | undefined;
  /**
   * The length of the upstream's window in milliseconds.
   * @default unknown
   */
  readonly windowMs?: number | undefined;
  /** The units of a call that was answered and not refused. */
  readonly accepted: number;
  /** Whether a call was refused. */
  readonly refused: boolean;
  /** The largest cost of a call that this instance knows of: a whole number >= 1. */
  readonly largest: number;
  /** The longest time in milliseconds between two calls of the largest cost, however slow the upstream seems. */
  readonly slowestMs: number;
}

/** The rate at which units may be sent, as far as it is known. */
export interface LearntRate {
  /** The units per interval: a whole number >= 1. */
  readonly rate: number;
  /** The interval in milliseconds: a whole number >= 1. */
  readonly intervalMs: number;
  /** The units that may be sent at once: a whole number >= 1. */
  readonly burst: number;
}
