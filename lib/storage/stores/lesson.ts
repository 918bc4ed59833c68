/** The state of an upstream's limit as a response reported it, and the units in flight to the upstream. A counter follows that limit. */
export interface Lesson {
  /**
   * The units that are left in the upstream's limit.
   * @default unknown
   */
  readonly remaining?: number | undefined;
  /**
   * Milliseconds from now until all units are back.
   * @default unknown
   */
  readonly resetAfterMs?: number | undefined;
  /** Milliseconds since the call that got this response was sent. */
  readonly ageMs: number;
  /**
   * Distinguishes the windows of the upstream's limits: a whole number >= 0.
   * @default no window: units come back gradually
   */
  readonly window?: number | undefined;
  /**
   * The quota of the upstream's window, a whole number >= 1. The next window has at most this many units.
   * @default unknown
   */
  readonly quota?: number | undefined;
  /** The units that this instance has in flight: charged, but not yet answered by the upstream. */
  readonly inFlight: number;
  /**
   * The units that this instance will request next. Other instances already count them as in flight.
   * @default 0
   */
  readonly asking?: number | undefined;
  /** Identifies this instance: a whole number >= 0. */
  readonly instance: number;
  /**
   * Milliseconds from now for which the upstream rejects all calls.
   * @default the upstream doesn't reject all calls
   */
  readonly blockMs?: number | undefined;
  /**
   * The lesson about the rate, for limits without a rate of their own. `learn` then returns the rate.
   * @default the limit has a rate
   */
  readonly rate?: RateLesson | undefined;
}

/** The facts that a response reveals about the rate that an upstream allows. */
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
  /** The cost of a call that was answered and not rejected. */
  readonly accepted: number;
  /** True if a call was rejected. */
  readonly refused: boolean;
  /** The largest cost of a call that this instance has seen: a whole number >= 1. */
  readonly largest: number;
  /** The longest time in milliseconds between two calls of the largest cost, no matter how slow the upstream seems. */
  readonly slowestMs: number;
}

/** The rate at which units may be sent, as learned so far. */
export interface LearntRate {
  /** The units per interval: a whole number >= 1. */
  readonly rate: number;
  /** The interval in milliseconds: a whole number >= 1. */
  readonly intervalMs: number;
  /** The units that may be sent at once: a whole number >= 1. */
  readonly burst: number;
}
