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
