/** What an upstream said of the limit that a counter follows, and what its calls in flight are. */
export interface Lesson {
  /**
   * The units that the upstream has left.
   * @default nothing is known of them
   */
  readonly remaining?: number | undefined;
  /**
   * Milliseconds from now until all of them are there again.
   * @default it is not known
   */
  readonly resetAfterMs?: number | undefined;
  /** Milliseconds since the call was sent to which this is the answer. */
  readonly ageMs: number;
  /**
   * Tells the windows of the upstream's limits apart: a whole number >= 0.
   * @default there is no window, units come back little by little
   */
  readonly window?: number | undefined;
  /** The units that this instance has in flight: they were charged, and the upstream has not answered yet. */
  readonly inFlight: number;
  /**
   * The units that this instance asks for next: for the others they are in flight already.
   * @default 0
   */
  readonly asking?: number | undefined;
  /** The number of this instance: a whole number >= 0 that no other has. */
  readonly instance: number;
  /**
   * Milliseconds from now until which the upstream refuses all calls.
   * @default it does not
   */
  readonly blockMs?: number | undefined;
  /**
   * What tells the rate of a limit that has none of its own; then the rate is answered.
   * @default the limit has a rate
   */
  readonly rate?: RateLesson | undefined;
}

/** What was found out of the rate that an upstream allows. */
export interface RateLesson {
  /**
   * The upstream's quota, a whole number >= 1.
   * @default it is not known
   */
  readonly quota?: number | undefined;
  /**
   * Milliseconds of the upstream's window.
   * @default it is not known
   */
  readonly windowMs?: number | undefined;
  /** The units of a call that was answered, and not refused. */
  readonly accepted: number;
  /** Whether a call was refused. */
  readonly refused: boolean;
  /** The largest cost of a call, as far as this instance knows: a whole number >= 1. */
  readonly largest: number;
  /** The longest milliseconds between two calls of the largest cost, however slow the upstream seems. */
  readonly slowestMs: number;
}

/** The rate at which units may go out, as far as it was learnt. */
export interface LearntRate {
  /** The units of an interval: a whole number >= 1. */
  readonly rate: number;
  /** Milliseconds: a whole number >= 1. */
  readonly intervalMs: number;
  /** The units that may go out at once: a whole number >= 1. */
  readonly burst: number;
}
