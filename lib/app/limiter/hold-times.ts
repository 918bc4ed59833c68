import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { StoreDecision } from '../../storage/stores/store.js';

/** The hold times of a limit's leases in this process, in milliseconds. */
interface HoldTimes {
  /** The time at which the first lease began. */
  readonly firstBegan: number;
  /** A moving average over the released leases. */
  mean: number | undefined;
}

/** The weight of a new lease in the average. */
const WEIGHT = 1 / 8;
/** The minimum expected wait before the first release. Earlier retries rarely succeed. */
const MIN_FIRST_WAIT_MS = 1000;

const holdTimes = new WeakMap<CompiledLimit, HoldTimes>();

/** Records a new lease. `now` is in milliseconds of the monotonic clock. */
export function leaseBegan(limit: CompiledLimit, now: number): void {
  if (!holdTimes.has(limit)) holdTimes.set(limit, { firstBegan: now, mean: undefined });
}

/** Records the end of a lease. */
export function leaseEnded(limit: CompiledLimit, heldMs: number): void {
  const times = holdTimes.get(limit);
  if (times !== undefined) times.mean = times.mean === undefined ? heldMs : times.mean + (heldMs - times.mean) * WEIGHT;
}

/**
 * Replaces the wait of a rejection with the expected one. The store only knows when leases expire, but most are released long before. Until
 * the first release, leases are expected to last twice as long as the first one has lasted so far.
 */
export function withExpectedWait(
  decision: StoreDecision,
  { limit, cost }: { limit: CompiledLimit; cost: number },
  now: number,
): StoreDecision {
  const { allowed, remaining, quota, retryAfterMs } = decision;
  const times = holdTimes.get(limit);
  if (allowed || times === undefined || limit.blockFor > 0) return decision;
  // Leases end sooner than that, so the key is blocked, or the cost never fits.
  if (retryAfterMs > limit.windowMs(0)) return decision;
  const { mean, firstBegan } = times;
  const wait =
    mean === undefined
      ? Math.max(MIN_FIRST_WAIT_MS, now - firstBegan)
      : (mean * (cost - remaining)) / (quota - remaining);
  return { ...decision, retryAfterMs: Math.min(retryAfterMs, Math.max(1, Math.ceil(wait))) };
}
