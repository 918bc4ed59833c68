/** The units that a key was charged lately, by a limit with `usage`. */
export interface RecentUsage {
  /** The time zone of the days. */
  readonly timezone: string;
  /** The first day that was read: 29 days ago, or the oldest one that is kept. */
  readonly since: string;
  /** The days with any units, the oldest first. */
  readonly days: readonly {
    /** Such as `'2026-11-22'`. */
    readonly day: string;
    /** Units that were charged and not given back. */
    readonly units: number;
  }[];
  /** Nothing is recorded of this key, and the limit left out keys beyond its `maxKeys`: it may be one of them. */
  readonly leftOut?: true;
}
