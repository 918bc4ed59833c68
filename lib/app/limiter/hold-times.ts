import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { StoreDecision } from '../../storage/stores/store.js';

/** The hold times of a limit's leases in this process, in milliseconds. */
interface HoldTimes {
  /** When the first lease began. */
  readonly firstBegan: number;
  /** A moving mean of the released leases. */
  mean: number | undefined;
}

/** The weight of a new lease in the mean. */
const WEIGHT = 1 / 8;
/** The shortest expected wait before the first release: an earlier retry seldom succeeds. */
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
 * Replaces the wait of a refusal by the expected one. The store knows when leases expire, but usually they are released long
 * before. Until the first release, leases are expected to last twice as long as the first one has lasted so far.
 */
export function withExpectedWait(
  decision: StoreDecision,
  { limit, cost }: { limit: CompiledLimit; cost: number },
  now: number,
): StoreDecision {
  const { allowed, remaining, quota, retryAfterMs } = decision;
  const times = holdTimes.get(limit);
  if (allowed || times === undefined || limit.blockFor > 0) return decision;
  // Leases end sooner than that: the key is blocked, or the cost never fits.
  if (retryAfterMs > limit.windowMs(0)) return decision;
  const { mean, firstBegan } = times;
  const wait =
    mean === undefined
      ? Math.max(MIN_FIRST_WAIT_MS, now - firstBegan)
      : (mean * (cost - remaining)) / (quota - remaining);
  return { ...decision, retryAfterMs: Math.min(retryAfterMs, Math.max(1, Math.ceil(wait))) };
}
