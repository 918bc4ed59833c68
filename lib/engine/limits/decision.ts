/** The decision of one limit on one request. */
export interface Decision {
  /** True if this limit lets the request pass. The request passes if all of its limits do. */
  allowed: boolean;
  /** The limit's name. */
  limit: string;
  /**
   * The maximum number of units that can be allowed at once, without those that `reserveFor` reserves for others. For a limit with
   * `rollover` or `credits`: the units of the current window, including those that were carried over and the credits.
   */
  quota: number;
  /** The number of whole units that a request could still take: 0 <= remaining <= quota. */
  remaining: number;
  /** 0 if allowed, otherwise the shortest wait in milliseconds after which the same request would fit; `Infinity` if it never can. */
  retryAfterMs: number;
  /** The milliseconds until no consumed units count any more. */
  resetAfterMs: number;
  /** The milliseconds to hold the request (`leaky-bucket`), otherwise 0. */
  delayMs: number;
  /**
   * The origin of the decision: Redis; the in-process store; `onStoreError` while Redis fails; a cached rejection; units that this instance
   * had prefetched from Redis; or a list that denies or exempts.
   */
  source: 'redis' | 'memory' | 'fallback' | 'cache' | 'prefetch' | 'list';
  /**
   * For a limit whose `blockFor` is a list: the number of blocks that the key has caused and that have not been forgotten, including the
   * one that this rejection starts; at most 255.
   */
  offences?: number;
  /** For a limit with `countRefused`: the units that were requested in the window, both allowed and rejected. */
  tried?: number;
  /** For a limit with `credits`: the remaining credits. They are included in `remaining`. */
  credits?: number;
  /** For a call with `upTo`: the number of units that it took, 0 if it was rejected; for a `peek`, the number that it would take. */
  taken?: number;
  /**
   * For an `adaptive` limit: the units in flight, including those that wait for the event loop. `quota` is the number currently allowed.
   */
  inFlight?: number;
  /**
   * For a `Limiter` with a nested limit: the decision at each level, its own first and the root's last. The decision itself is the tightest
   * of them.
   */
  levels?: Decision[];
}

/** The result of all limits of one request: either all of them allowed it, or none was charged. */
export interface CheckResult {
  /** True if the request may pass. */
  allowed: boolean;
  /** One decision for each limit, in the order of the limits. */
  decisions: Decision[];
  /** The tightest decision: of those that rejected, the one with the longest wait; otherwise the one with the fewest units left. */
  tightest: Decision;
  /** The milliseconds to hold the request: the longest delay of its decisions. */
  delayMs: number;
  /** For a check with `upTo`: the number of units that it took from each limit; 0 if it was rejected. */
  taken?: number;
}
