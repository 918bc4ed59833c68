import type { Anchor } from '../algorithms/anchor.js';
import type { Tenant } from '../algorithms/fair-share.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { Priority } from '../limits/priority.js';
import { toDecision } from '../stores/store-decision.js';
import { listMessages } from '../errors/messages/list.js';
import { messages } from '../errors/messages/general.js';
import type { StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { onAbort } from '../util/on-abort.js';
import { RateLimitTimeoutError } from './rate-limit-timeout.error.js';

/** The units of a waiting call, and the end of its wait. */
export interface WaitOptions {
  readonly cost: number;
  readonly priority?: Priority | undefined;
  /** The tenant that waits, where units are shared. */
  readonly tenant?: Tenant | undefined;
  /** Where its windows begin, where that depends on who asks. */
  readonly anchor?: Anchor | null | undefined;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A call that waits for units: until they may be used, the time is over, or the signal aborts. */
export class Waiter {
  readonly cost: number;
  readonly priority: Priority | undefined;
  /** The decision that allows the call, or the reason why it waits no longer. */
  readonly decided: Promise<StoreDecision>;
  /** Is called once, if the wait ends without units. */
  onRejected: () => void = () => undefined;
  /** In milliseconds of the monotonic clock. */
  readonly deadline: number;
  private lastRefusal: StoreDecision | undefined;
  private settled = false;
  private timeout: LongTimeout;
  private readonly unsubscribe: (() => void) | undefined;
  private resolve!: (decision: StoreDecision) => void;
  private rejectWith!: (reason: unknown) => void;

  constructor(
    /** The limit in force now. */
    readonly limit: () => CompiledLimit,
    private readonly options: WaitOptions,
    /** Is called once, when the wait is over. */
    private readonly onSettled: () => void = () => undefined,
  ) {
    const { cost, priority, timeoutMs, signal } = options;
    this.cost = cost;
    this.priority = priority;
    this.deadline = performance.now() + timeoutMs;
    this.decided = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.rejectWith = reject;
    });
    // A call without any time is ended by its first refusal, not by a timer.
    this.timeout = new LongTimeout(timeoutMs === 0 ? Infinity : timeoutMs, this.expire);
    if (signal?.aborted === true) this.abort();
    else if (signal !== undefined) this.unsubscribe = onAbort(signal, this.abort);
  }

  get isSettled(): boolean {
    return this.settled;
  }

  /** The time that is left, in milliseconds. */
  get leftMs(): number {
    return Math.max(0, this.deadline - performance.now());
  }

  /** Stops the timeout: the units are reserved, and usable in time. */
  suspendTimeout(): void {
    this.timeout.clear();
  }

  /** Starts the timeout again: the units are no longer reserved. */
  resumeTimeout(): void {
    if (!this.settled && this.options.timeoutMs > 0) this.timeout = new LongTimeout(this.leftMs, this.expire);
  }

  /** Ends the wait with units that may be used now. */
  release(decision: StoreDecision): void {
    if (!this.settled) this.settle(() => this.resolve(decision));
  }

  /** Whether the time is over before the units are there, by a refusal of the same cost or less. */
  timesOutBy(refusal: StoreDecision): boolean {
    return this.isTooLate(leastWaitMs(this.limit(), refusal, this.cost));
  }

  /** Whether the time is over before units are there that are `waitMs` away. */
  isTooLate(waitMs: number): boolean {
    const { leftMs } = this;
    return leftMs === 0 || waitMs === Infinity || waitMs > leftMs;
  }

  /** Goes on waiting after a refusal, unless the units, which are `waitMs` away or more, come too late. */
  refuse(refusal: StoreDecision, waitMs = leastWaitMs(this.limit(), refusal, this.cost)): void {
    if (this.settled) return;
    this.lastRefusal = refusal;
    if (this.isTooLate(waitMs)) this.expire();
  }

  /** Goes on waiting for reserved units that are `ms` away now, unless that is too late. */
  postpone(decision: StoreDecision, ms: number): void {
    if (ms > this.leftMs) this.refuse({ ...decision, allowed: false, retryAfterMs: Math.ceil(ms), delayMs: 0 });
  }

  /** Ends the wait without units. */
  reject(reason: unknown): void {
    if (this.settled) return;
    this.settle(() => this.rejectWith(reason));
    this.onRejected();
  }

  private readonly expire = (): void => {
    const { cost, lastRefusal, options } = this;
    const { name } = this.limit();
    const message =
      lastRefusal?.source === 'list'
        ? listMessages.deniedKey(name)
        : lastRefusal?.retryAfterMs === Infinity
          ? messages.neverFits(name, cost, lastRefusal.quota)
          : messages.timedOut(name, options.timeoutMs);
    this.reject(new RateLimitTimeoutError(message, lastRefusal && toDecision(lastRefusal)));
  };

  private readonly abort = (): void => {
    this.reject(this.options.signal?.reason);
  };

  private settle(settlePromise: () => void): void {
    this.settled = true;
    this.timeout.clear();
    this.unsubscribe?.();
    settlePromise();
    this.onSettled();
  }
}

/** The shortest wait for `cost` units after a refusal, in milliseconds; `Infinity` for units that never fit. */
export function leastWaitMs(
  { algorithm, parameters }: CompiledLimit,
  { retryAfterMs, resetAfterMs }: StoreDecision,
  cost: number,
): number {
  if (retryAfterMs === Infinity) return Infinity;
  // Held units can be released at any time.
  if (algorithm.holding !== undefined) return 0;
  // The units of a queue then wait for their turn in it.
  const spacingMs = (algorithm.queue?.spacing(parameters) ?? 0) / 1000;
  return Math.max(retryAfterMs, spacingMs > 0 ? resetAfterMs + (cost - 1) * spacingMs : 0);
}
