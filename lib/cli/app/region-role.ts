/** What the Redis of `--redis` is to apps in several regions. It may be both. */
export interface RegionRole {
  /** Whether it counts for several regions. */
  readonly isHome: boolean;
  /** Whether it counts for a region: then its instances read changes at the home. */
  readonly isRegion: boolean;
  /** Why it is not known. */
  readonly unread?: string;
}

export const NO_REGIONS: RegionRole = { isHome: false, isRegion: false };

/** Whether changes are kept at a home that is not given. */
export function isWithoutHome({ isHome, isRegion }: RegionRole, home: unknown): boolean {
  return home === undefined && isRegion && !isHome;
}
