import type { CompiledLimit } from './compiled-limit.js';

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

/**
 * The decisions of limits that are hidden from clients. They are marked here, since decisions belong to users, who return and compare them.
 */
const hidden = new WeakSet<Decision>();

/** Marks a decision as hidden from clients, and returns it. */
export function hide<D extends Decision>(decision: D): D {
  hidden.add(decision);
  return decision;
}

/** Returns true if a decision is hidden from clients. */
export function isHidden(decision: Decision): boolean {
  return hidden.has(decision);
}

/** A limit that was checked. */
export interface CheckedLimit {
  readonly limit: CompiledLimit;
}

/** Combines the decisions of limits, which are in the same order. There must be at least one. */
export function toCheckResult(decisions: Decision[], checked: readonly CheckedLimit[]): CheckResult {
  let enforced: Decision | undefined;
  let refused: Decision | undefined;
  let delayMs = 0;
  for (let i = 0; i < decisions.length; i++) {
    const decision = decisions[i]!;
    if (checked[i]!.limit.shadow) continue;
    enforced = enforced === undefined ? decision : tighter(enforced, decision);
    delayMs = Math.max(delayMs, decision.delayMs);
    if (decision.allowed) continue;
    if (refused === undefined || decision.retryAfterMs > refused.retryAfterMs) refused = decision;
  }
  if (refused !== undefined) return { allowed: false, decisions, tightest: refused, delayMs: 0 };
  return { allowed: true, decisions, tightest: enforced ?? decisions.reduce(tighter), delayMs };
}

/** Returns true if a decision rejects its request. A shadow limit only reports. */
export function isRefusal({ shadow }: Pick<CompiledLimit, 'shadow'>, { allowed }: Pick<Decision, 'allowed'>): boolean {
  return !allowed && !shadow;
}

/** Returns the one of two allowing decisions that leaves fewer units. */
export function tighter(one: Decision, other: Decision): Decision {
  if (other.remaining !== one.remaining) return other.remaining < one.remaining ? other : one;
  return other.resetAfterMs > one.resetAfterMs ? other : one;
}
