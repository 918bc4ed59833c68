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
}
