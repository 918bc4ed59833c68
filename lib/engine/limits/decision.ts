/** The decision of one limit on one request. */
export interface Decision {
  /** Whether this limit lets the request pass. The request passes if all of its limits do. */
  allowed: boolean;
  /** The limit's name. */
  limit: string;
  /**
   * The most units that can be allowed at once; without those that `reserveFor` keeps for others. For a limit with `rollover` or
   * `credits`: the units of the current window, including those that moved into it and the credits.
   */
  quota: number;
  /** Whole units that a request could still take now: 0 <= remaining <= quota. */
  remaining: number;
  /** 0 if allowed, else the shortest wait in milliseconds after which the same request would fit; `Infinity` if it never can. */
  retryAfterMs: number;
  /** Milliseconds until nothing that was consumed counts any more. */
  resetAfterMs: number;
  /** Milliseconds to hold the request (`leaky-bucket`), else 0. */
  delayMs: number;
  /**
   * What decided: Redis; the in-process store; `onStoreError` while Redis fails; a remembered refusal; units that this instance
   * had prefetched from Redis; or a list that refuses or exempts.
   */
  source: 'redis' | 'memory' | 'fallback' | 'cache' | 'prefetch' | 'list';
  /**
   * For a limit whose `blockFor` is a list: the number of blocks that the key has earned and that are not forgotten, including
   * the one that this refusal begins; at most 255.
   */
  offences?: number;
  /** For a limit with `countRefused`: the units that were asked for in the window, allowed or refused. */
  tried?: number;
  /** For a limit with `credits`: the credits left. They are included in `remaining`. */
  credits?: number;
  /** For a call with `upTo`: the units that it took, 0 if it was refused; for a `peek`, those that it would take. */
  taken?: number;
  /**
   * For an `adaptive` limit: the units in flight, including those that wait for the event loop. `quota` is what it allows now.
   */
  inFlight?: number;
  /**
   * For a `Limiter` whose limit is within others: the decision of each of these limits, its own first and the root's last. The
   * decision itself is the one of them that binds most.
   */
  levels?: Decision[];
}

/** The result of all limits of one request: allowed by all of them, or charged to none. */
export interface CheckResult {
  /** Whether the request may pass. */
  allowed: boolean;
  /** One decision for each limit, in the order of the limits. */
  decisions: Decision[];
  /** The decision that binds most: of those that refused, the one with the longest wait, else the one with the least left. */
  tightest: Decision;
  /** Milliseconds to hold the request: the longest delay of its decisions. */
  delayMs: number;
  /** For a check with `upTo`: the units that it took from each limit; 0 if it was refused. */
  taken?: number;
}
