import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { StoreDecision } from '../stores/store.js';

/** How long the leases of a limit are held in this process, in milliseconds. */
interface HoldTimes {
  /** When the first of them was taken. */
  readonly first: number;
  /** A moving mean of those that were released. */
  mean: number | undefined;
}

/** What a new one counts for in the mean. */
const SHARE = 1 / 8;
/** The least that is told while nothing is known: to come back sooner is seldom worth a try. */
const LEAST_MS = 1000;

const holdTimes = new WeakMap<CompiledLimit, HoldTimes>();

/** A lease has been taken. `now` is in milliseconds, on a clock that only goes forward. */
export function leaseBegan(limit: CompiledLimit, now: number): void {
  if (!holdTimes.has(limit)) holdTimes.set(limit, { first: now, mean: undefined });
}

/** A lease has been released that was held for so long. */
export function leaseEnded(limit: CompiledLimit, heldMs: number): void {
  const times = holdTimes.get(limit);
  if (times !== undefined) times.mean = times.mean === undefined ? heldMs : times.mean + (heldMs - times.mean) * SHARE;
}

/**
 * A refusal with the wait that is to be expected. The store knows when leases end if nobody releases them; as a rule they are
 * released long before. Before the first release, what has been held so long is taken to go on as long again, for a second at least.
 */
export function withExpectedWait(
  decision: StoreDecision,
  { limit, cost }: { limit: CompiledLimit; cost: number },
  now: number,
): StoreDecision {
  const { allowed, remaining, quota, retryAfterMs } = decision;
  const times = holdTimes.get(limit);
  if (allowed || times === undefined || limit.blockFor > 0) return decision;
  // No lease lasts longer than its time to live: it is blocked, or asks for more than ever fits.
  if (retryAfterMs > limit.windowMs(0)) return decision;
  const { mean, first } = times;
  const wait = mean === undefined ? Math.max(LEAST_MS, now - first) : (mean * (cost - remaining)) / (quota - remaining);
  return { ...decision, retryAfterMs: Math.min(retryAfterMs, Math.max(1, Math.ceil(wait))) };
}
