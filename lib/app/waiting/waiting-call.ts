import type { RateLimitErrorCode } from '../../engine/errors/errors.js';
import { listMessages } from '../../engine/errors/messages/rates.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { toDecision } from '../../storage/stores/store-decision.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import { RateLimitTimeoutError } from './waiting-errors.js';
import type { Refusal, Turn } from './turn.js';

interface Subscription {
  readonly listeners: Set<() => void>;
  readonly notify: () => void;
}

/** One listener per signal, because Node warns about many listeners, and a signal may end many waits. */
const subscriptions = new WeakMap<AbortSignal, Subscription>();

/** Calls back once the signal aborts. Returns a function that unsubscribes. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  let subscription = subscriptions.get(signal);
  if (subscription === undefined) {
    const listeners = new Set<() => void>();
    subscription = { listeners, notify: () => listeners.forEach((each) => each()) };
    subscriptions.set(signal, subscription);
    signal.addEventListener('abort', subscription.notify, { once: true });
  }
  const { listeners, notify } = subscription;
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    signal.removeEventListener('abort', notify);
    subscriptions.delete(signal);
  };
}

/** Observes requests to limits, once for all calls in a round: the costs are their sums. */
export interface AskWatcher {
  /** Called before the limits are checked. Never rejects. */
  ask(entries: readonly CheckEntry[]): Promise<void>;
  /** Called when the limits have decided. */
  asked(entries: readonly CheckEntry[]): void;
}

/** The options of a wait. Times are in milliseconds of the monotonic clock. */
export interface WaitOptions {
  /** The maximum wait, counted from `since`. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /**
   * The time at which the call arrived. Earlier calls go first.
   * @default now
   */
  readonly since?: number;
  /** A head start over calls that arrived at the same time, in milliseconds. */
  readonly aheadMs?: number;
  /**
   * Neither the call nor those behind it continue before this time. It has waited before, so it may wait again, regardless of `maxWaiters`.
   */
  readonly notBefore?: number;
  readonly watcher?: AskWatcher | undefined;
}

/** Numbers calls in the order in which they arrive. */
let calls = 0;

/** The queue or line that contains a waiting call. */
export interface CallHolder {
  /** Called once, if the wait of a call ends without units. */
  onLeft(call: WaitingCall): void;
}

/** A call that waits for units of its limits until it can use them, it times out, or its signal aborts. */
export class WaitingCall {
  /** Resolves to the decisions that let the call continue; rejects with the reason why it no longer waits. */
  readonly taken: Promise<Turn>;
  holder: CallHolder | undefined;
  /** In milliseconds of the monotonic clock. */
  readonly deadline: number;
  private readonly rank: number;
  private readonly number = calls++;
  private refusal: Refusal | undefined;
  private settled = false;
  private timeout: LongTimeout | undefined;
  private readonly unsubscribe: (() => void) | undefined;
  private resolve!: (turn: Turn) => void;
  private rejectWith!: (reason: unknown) => void;

  constructor(
    /** Returns its request under the current limits. */
    readonly entries: () => readonly CheckEntry[],
    /** Its request when it arrived, which is for the same units. */
    private readonly asked: readonly CheckEntry[],
    private readonly options: WaitOptions,
    /** Called once, when the wait is over. */
    private readonly onSettled: () => void,
  ) {
    const now = performance.now();
    const { since = now, aheadMs = 0, timeoutMs, signal } = options;
    this.rank = since - aheadMs;
    this.deadline = since + timeoutMs;
    this.taken = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.rejectWith = reject;
    });
    const leftMs = timeoutMs - (now - since);
    // A call without any time is ended by its first rejection, not by a timer.
    if (leftMs > 0) this.startTimeout(leftMs);
    if (signal?.aborted === true) this.reject(signal.reason);
    else if (signal !== undefined) this.unsubscribe = onAbort(signal, () => this.reject(signal.reason));
  }

  get isSettled(): boolean {
    return this.settled;
  }

  /** The name of its first limit, for errors. */
  get name(): string {
    return this.asked[0]!.limit.name;
  }

  /** The number of units that it requests from its first limit. */
  get cost(): number {
    return this.asked[0]!.cost;
  }

  /** The number of units that it requests from one of its limits. */
  costOf(index: number): number {
    return this.asked[index]!.cost;
  }

  /** The remaining time, in milliseconds. */
  get leftMs(): number {
    return Math.max(0, this.deadline - performance.now());
  }

  get notBefore(): number {
    return this.options.notBefore ?? 0;
  }

  get watcher(): AskWatcher | undefined {
    return this.options.watcher;
  }

  /** Returns true if it goes before another call. */
  precedes({ rank, number }: WaitingCall): boolean {
    return this.rank === rank ? this.number < number : this.rank < rank;
  }

  /** Returns true if it requests at least as many units from each limit as another call for the same limits. */
  asksAtLeast({ asked }: WaitingCall): boolean {
    return this.asked.every(({ cost }, index) => cost >= asked[index]!.cost);
  }

  /** Stops the timeout, because it has units that can be used in time. */
  suspendTimeout(): void {
    this.timeout?.clear();
  }

  /** Restarts the timeout, because its units were taken back. */
  resumeTimeout(): void {
    if (!this.settled && this.options.timeoutMs > 0) this.startTimeout(this.leftMs);
  }

  private startTimeout(ms: number): void {
    if (ms < Infinity) this.timeout = new LongTimeout(ms, () => this.expire());
  }

  /** Ends the wait with units that can be used now. */
  release(turn: Turn): void {
    if (this.settled) return;
    this.settle();
    this.resolve(turn);
  }

  /** Returns true if units may be freed at any time, because a holder releases them or an upstream reports more. */
  isPolled({ limit, decision }: Refusal): boolean {
    const isLent = this.watcher !== undefined || limit.algorithm.leases !== undefined;
    return isLent && decision.retryAfterMs < Infinity;
  }

  /**
   * The shortest possible wait after its limits have rejected the same number of units or fewer, in milliseconds; `Infinity` if the units
   * never fit.
   */
  leastWaitMs(refusals: readonly Refusal[]): number {
    let longest = 0;
    for (const refusal of refusals) {
      if (this.isPolled(refusal)) continue;
      const { retryAfterMs, resetAfterMs } = refusal.decision;
      const { algorithm, parameters } = refusal.limit;
      // After that, units of a queue wait for their turn.
      const spacingMs = (algorithm.queue?.spacing(parameters) ?? 0) / 1000;
      const turnMs = spacingMs > 0 ? resetAfterMs + (this.costOf(refusal.index) - 1) * spacingMs : 0;
      longest = Math.max(longest, retryAfterMs, turnMs);
    }
    return longest;
  }

  /** Returns true if it times out before units that are `waitMs` away. */
  isTooLate(waitMs: number): boolean {
    const { leftMs } = this;
    return leftMs === 0 || waitMs === Infinity || waitMs > leftMs;
  }

  /** Keeps waiting after a rejection, unless the units, which are at least `waitMs` away, come too late. */
  refuse(refusal: Refusal, waitMs: number): void {
    if (this.settled) return;
    this.refusal = refusal;
    if (this.isTooLate(waitMs)) this.expire();
  }

  /** Keeps waiting for units that one of its limits has granted and that are now `ms` away, unless that is too late. */
  postpone(taken: Refusal, ms: number): void {
    if (ms <= this.leftMs) return;
    const decision = { ...taken.decision, allowed: false, retryAfterMs: Math.ceil(ms), delayMs: 0 };
    this.refuse({ ...taken, decision }, ms);
  }

  /** Ends the wait without units. */
  reject(reason: unknown): void {
    if (this.settled) return;
    this.settle();
    this.rejectWith(reason);
    this.holder?.onLeft(this);
  }

  private expire(): void {
    const { refusal, options } = this;
    const name = refusal?.limit.name ?? this.name;
    const decision = refusal?.decision;
    let message = messages.timedOut(name, options.timeoutMs);
    let code: RateLimitErrorCode = 'SLUICE_TIMEOUT';
    if (decision?.source === 'list') {
      message = listMessages.deniedKey(name);
      code = 'SLUICE_DENIED';
    } else if (decision?.retryAfterMs === Infinity) {
      message = messages.neverFits(name, this.costOf(refusal!.index), decision.quota);
      code = 'SLUICE_COST_ABOVE_QUOTA';
    }
    this.reject(new RateLimitTimeoutError(message, decision && toDecision(decision), { code }));
  }

  private settle(): void {
    this.settled = true;
    this.timeout?.clear();
    this.unsubscribe?.();
    this.onSettled();
  }
}
