/** The units that a limit with `usage` recently charged a key. */
export interface RecentUsage {
  /** The time zone of the days. */
  readonly timezone: string;
  /** The first day that was read: 29 days ago, or the oldest one that is stored. */
  readonly since: string;
  /** The days with any units, the oldest first. */
  readonly days: readonly {
    /** Such as `'2026-11-22'`. */
    readonly day: string;
    /** The units that were charged, minus refunds. */
    readonly units: number;
  }[];
  /** `true` if nothing is recorded for this key and the limit has left out keys beyond its `maxKeys`, so that this may be one of them. */
  readonly leftOut?: true;
}

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
