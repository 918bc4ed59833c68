/** A change of what a counter was charged before: units that came back, or that were really used. */
export interface Correction {
  readonly difference: number;
  /** When they were charged, in microseconds; nothing if it is not known. */
  readonly chargedAt: number | undefined;
}
