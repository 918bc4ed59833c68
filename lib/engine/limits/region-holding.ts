/** What a region holds of a counter, as the home knows it from its last call. */
export interface RegionHolding {
  /** Its name. */
  readonly region: string;
  /** Units that it held when it called last for this key; some may have been used since. */
  readonly held: number;
  /** Units that it was granted in the window of then, and has not given back. Only windows have such a count. */
  readonly granted: number;
  /** Milliseconds since it called for this key; absent if it has not, or it is no longer known. */
  readonly ageMs?: number;
  /** Milliseconds since it called for any key. */
  readonly seenMs?: number;
}
