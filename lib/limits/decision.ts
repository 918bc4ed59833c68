/** The answer of one limit for one request. */
export interface Decision {
  /** Whether this limit lets the request pass. The request passes if all of its limits do. */
  allowed: boolean;
  /** The limit's name. */
  limit: string;
  /**
   * The most units that can be allowed at once; where some are kept for others (`reserveFor`), without these. Of a limit with
   * `rollover` or `credits`: those of the window that runs, with what moved into it and with credits.
   */
  quota: number;
  /** Whole units that a request could still take now: 0 <= remaining <= quota. */
  remaining: number;
  /** 0 if allowed, else the shortest wait in milliseconds after which this very request would fit; `Infinity` if it never can. */
  retryAfterMs: number;
  /** Milliseconds until nothing of what was consumed counts any more. */
  resetAfterMs: number;
  /** Milliseconds to hold the request (`leaky-bucket`), else 0. */
  delayMs: number;
  /**
   * Who decided: Redis; the in-process store; while Redis fails, what `onStoreError` says; a refusal that is remembered;
   * units that this instance had taken from Redis before; or a list that refuses or exempts.
   */
  source: 'redis' | 'memory' | 'fallback' | 'cache' | 'prefetch' | 'list';
  /**
   * Of a limit whose `blockFor` has steps: how many blocks this key earned that are not forgotten, at most 255; with the one
   * that this refusal begins.
   */
  offences?: number;
  /** Of a limit with `credits`: those that are left. `remaining` has them, too. */
  credits?: number;
  /** Of an `adaptive` limit, whose `quota` is what it lets in now: the units in flight, those that wait for the event loop included. */
  inFlight?: number;
  /**
   * Of a `Limiter` whose limit is within others: what each level said, this limit first and the root last. The decision itself is
   * the one of them that binds most.
   */
  levels?: Decision[];
}

/** The answer of all limits of one request, which is allowed by all of them, or charged to none. */
export interface CheckResult {
  /** Whether the request may pass. */
  allowed: boolean;
  /** One decision a limit, in the order of the limits. */
  decisions: Decision[];
  /** The decision that binds most: of those that refused the one with the longest wait, else the one with the least left. */
  tightest: Decision;
  /** Milliseconds to hold the request: the longest of its decisions. */
  delayMs: number;
}
