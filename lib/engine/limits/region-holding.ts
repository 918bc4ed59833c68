/** The units that a region holds of a counter, according to the region's last call to its home region. */
export interface RegionHolding {
  /** Its name. */
  readonly region: string;
  /** The units that it held at its last call for this key. Some may have been used since. */
  readonly held: number;
  /** The units that it was granted in the window of that call, minus those that it returned. Only windows have this number. */
  readonly granted: number;
  /** The milliseconds since it called for this key; absent if it has not, or the home region no longer knows it. */
  readonly ageMs?: number;
  /** The milliseconds since it called for any key. */
  readonly seenMs?: number;
}
