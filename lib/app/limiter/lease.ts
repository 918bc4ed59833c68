import type { LeaseEnd } from '../../engine/algorithms/algorithm.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { CheckResult, Decision } from '../../engine/limits/decision.js';
import { LONGEST_TIMEOUT_MS, LongTimeout } from '../../engine/util/long-timeout.js';
import { heldOf } from '../../storage/stores/store-decision.js';
import type { HeldLease, Store, StoreDecision } from '../../storage/stores/store.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/** The number of renewals within a lease's time to live. */
const RENEWALS = 3;

/** Units of a `concurrency` limit, held until they are released or the limit's `ttl` is over. */
export class Lease implements AsyncDisposable {
  /** Identifies the lease among all leases of its key. */
  readonly id: string;
  // Private at run time as well, so that a decision with its lease can be logged or sent.
  readonly #held: readonly HeldLease[];
  readonly #store: Store;
  readonly #queues: WaitQueues;
  readonly #heldSince = performance.now();
  #released: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #resting: LongTimeout | undefined;

  /**
   * @internal Without `held` it holds no units, because a shadow limit would have rejected. With several levels, it holds units of each.
   */
  constructor(held: HeldLease | readonly HeldLease[] | undefined, store: Store, queues: WaitQueues) {
    this.#held = held === undefined ? [] : 'limit' in held ? [held] : held;
    this.#store = store;
    this.#queues = queues;
    this.id = this.#held.length === 0 ? 'none' : String(this.#held[0]!.ticket);
    for (const { limit } of this.#held) leaseBegan(limit, this.#heldSince);
  }

  /**
   * Releases the units; a second call has no effect. If the store fails, they are free after `ttl`.
   *
   * @param end how the work ended, from which an `adaptive` limit learns: `'dropped'` after a timeout or an overload downstream,
   * `'aborted'` by its client, `'ignored'` if it reveals nothing about load; by default `'completed'`
   */
  release(end: LeaseEnd = 'completed'): Promise<void> {
    return (this.#released ??= this.free(end));
  }

  /** Holds the units for another `ttl` from now. Resolves to true if they were still held. Rejects with `RateLimitStoreError`. */
  async renew(): Promise<boolean> {
    if (this.#released !== undefined) return false;
    const held = await Promise.all(this.#held.map((each) => this.#store.renew(each)));
    return held.every((isHeld) => isHeld);
  }

  /** Renews the lease until it is released, for work that may take longer than `ttl`. */
  keepAlive(): this {
    // If an adaptive limit counts work for longer than `ttl`, it is a stream, or never ends.
    const held = this.#held.filter(({ limit }) => !limit.adapts);
    if (held.length === 0 || this.#released !== undefined || this.#resting !== undefined) return this;
    const now = Date.now();
    const ttls = held.flatMap(({ limit }) => [limit.windowMs(now), limit.candidate?.windowMs(now) ?? Infinity]);
    const ttlMs = Math.min(...ttls);
    const everyMs = Math.max(1, Math.min(ttlMs / RENEWALS, LONGEST_TIMEOUT_MS));
    this.#queues.kept.add(this);
    this.#timer ??= setInterval(() => void this.renew().catch(() => false), everyMs).unref();
    return this;
  }

  /** @internal Stops renewing the lease, because its work may never end. It is held for another `ttl` at most. */
  rest(): void {
    clearInterval(this.#timer);
    const ttls = this.#held.map(({ limit }) => limit.windowMs(Date.now()));
    if (ttls.length === 0 || this.#released !== undefined) return;
    this.#resting ??= new LongTimeout(Math.max(...ttls), () => void this.release('ignored').catch(() => false), false);
  }

  /** Releases the units, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  private async free(end: LeaseEnd): Promise<void> {
    clearInterval(this.#timer);
    this.#resting?.clear();
    const held = this.#held;
    if (held.length === 0) return;
    const heldMs = performance.now() - this.#heldSince;
    for (const { limit } of held) leaseEnded(limit, heldMs);
    try {
      await this.#store.refund(held.map((each) => (each.limit.adapts ? { ...each, end } : each)));
    } catch (error) {
      if (!(error instanceof RateLimitStoreError)) throw error;
    } finally {
      this.#queues.kept.delete(this);
    }
    for (const each of held) this.#queues.wake(each);
  }
}

/** A decision for code, with a lease if a `concurrency` limit holds units. Routes release theirs automatically. */
export interface LeasedDecision extends Decision {
  /** Holds the units; absent for limits of other algorithms, and for rejections. */
  lease?: Lease;
}

/** The decisions of several limits for code. */
export interface LeasedCheckResult extends CheckResult {
  /** One decision for each limit, in the order of the limits. */
  decisions: LeasedDecision[];
}

/** Adds the lease of held units to a decision. If nothing is held but the code may continue, the lease is empty. */
export function withLease(
  decision: Decision,
  answer: StoreDecision,
  entry: CheckEntry,
  store: Store,
  queues: WaitQueues,
): LeasedDecision {
  const { limit, cost } = entry;
  if (limit.algorithm.leases === undefined) return decision;
  const held = heldOf(entry, answer);
  const goesOn = limit.off || (answer.allowed ? answer.source === 'list' || cost === 0 : limit.shadow);
  return held === undefined && !goesOn ? decision : { ...decision, lease: new Lease(held, store, queues) };
}

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
