/** The result of a hit for throttler's guard: its `ThrottlerStorageRecord`. Times are in seconds, rounded up. */
export interface ThrottlerRecord {
  /** Hits that count now, the rejected one included. */
  totalHits: number;
  /** Seconds until the reported window ends. */
  timeToExpire: number;
  /** True if the hit is rejected. */
  isBlocked: boolean;
  /** Seconds until a hit can be allowed again; 0 if this one is. */
  timeToBlockExpire: number;
}

/** The terms of a hit. Times are in milliseconds. */
export interface HitTerms {
  /** How long a hit counts. */
  readonly ttl: number;
  readonly limit: number;
  /** How long a block lasts; 0 blocks nobody, and rejected hits don't count. */
  readonly block: number;
}

/** A record from times in milliseconds. */
export function recordOf(hits: number, windowMs: number, isBlocked: boolean, blockMs: number): ThrottlerRecord {
  return {
    totalHits: hits,
    timeToExpire: Math.ceil(windowMs / 1000),
    isBlocked,
    timeToBlockExpire: Math.ceil(blockMs / 1000),
  };
}
