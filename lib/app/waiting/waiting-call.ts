import type { RateLimitErrorCode } from '../../engine/errors/codes.js';
import { listMessages } from '../../engine/errors/messages/list.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { toDecision } from '../../storage/stores/store-decision.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import { onAbort } from '../../engine/util/on-abort.js';
import { RateLimitTimeoutError } from './rate-limit-timeout.error.js';
import type { Refusal, Turn } from './turn.js';

/** Observes what limits are asked, once for all calls that are asked for together: the costs are their sums. */
export interface AskWatcher {
  /** Called before the limits are asked. Never rejects. */
  ask(entries: readonly CheckEntry[]): Promise<void>;
  /** Called when the limits have answered. */
  asked(entries: readonly CheckEntry[]): void;
}

/** How a call waits. Times are milliseconds of the monotonic clock. */
export interface WaitOptions {
  /** The longest wait, from `since`. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /**
   * When the call came: earlier ones go first.
   * @default now
   */
  readonly since?: number;
  /** Head start, in milliseconds, over calls that arrived together. */
  readonly aheadMs?: number;
  /**
   * Neither the call nor those behind it go on before this time. It has waited before, so it may wait again, however many calls
   * do.
   */
  readonly notBefore?: number;
  readonly watcher?: AskWatcher | undefined;
}

/** Numbers calls in the order in which they come. */
let calls = 0;

/** What a call waits in. */
export interface CallHolder {
  /** Called once, if the wait of a call ends without units. */
  onLeft(call: WaitingCall): void;
}

/** A call that waits for units of its limits: until it may use them, its time is up, or its signal aborts. */
export class WaitingCall {
  /** Resolves to the answers that let the call go on; rejects with the reason why it no longer waits. */
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
    /** What it asks of the limits in force now. */
    readonly entries: () => readonly CheckEntry[],
    /** What it asked of them when it came: the same units. */
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
    // A call with no time is ended by its first refusal, not by a timer.
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

  /** The units that it asks of its first limit. */
  get cost(): number {
    return this.asked[0]!.cost;
  }

  /** The units that it asks of one of its limits. */
  costOf(index: number): number {
    return this.asked[index]!.cost;
  }

  /** The time that is left, in milliseconds. */
  get leftMs(): number {
    return Math.max(0, this.deadline - performance.now());
  }

  get notBefore(): number {
    return this.options.notBefore ?? 0;
  }

  get watcher(): AskWatcher | undefined {
    return this.options.watcher;
  }

  /** Whether it goes before another call. */
  precedes({ rank, number }: WaitingCall): boolean {
    return this.rank === rank ? this.number < number : this.rank < rank;
  }

  /** Whether it asks at least as much as another call of the same limits, from each of them. */
  asksAtLeast({ asked }: WaitingCall): boolean {
    return this.asked.every(({ cost }, index) => cost >= asked[index]!.cost);
  }

  /** Stops the timeout: the units are taken, and usable in time. */
  suspendTimeout(): void {
    this.timeout?.clear();
  }

  /** Starts the timeout again: the units were taken back. */
  resumeTimeout(): void {
    if (!this.settled && this.options.timeoutMs > 0) this.startTimeout(this.leftMs);
  }

  private startTimeout(ms: number): void {
    if (ms < Infinity) this.timeout = new LongTimeout(ms, () => this.expire());
  }

  /** Ends the wait with units that may be used now. */
  release(turn: Turn): void {
    if (this.settled) return;
    this.settle();
    this.resolve(turn);
  }

  /** Whether units may be freed at any time: a holder releases them, or an upstream reports more. */
  isPolled({ limit, decision }: Refusal): boolean {
    const isLent = this.watcher !== undefined || limit.algorithm.leases !== undefined;
    return isLent && decision.retryAfterMs < Infinity;
  }

  /**
   * The shortest wait after its limits have refused at most as many units, in milliseconds; `Infinity` for units that never fit.
   */
  leastWaitMs(refusals: readonly Refusal[]): number {
    let longest = 0;
    for (const refusal of refusals) {
      if (this.isPolled(refusal)) continue;
      const { retryAfterMs, resetAfterMs } = refusal.decision;
      const { algorithm, parameters } = refusal.limit;
      // The units of a queue then wait for their turn in it.
      const spacingMs = (algorithm.queue?.spacing(parameters) ?? 0) / 1000;
      const turnMs = spacingMs > 0 ? resetAfterMs + (this.costOf(refusal.index) - 1) * spacingMs : 0;
      longest = Math.max(longest, retryAfterMs, turnMs);
    }
    return longest;
  }

  /** Whether its time is up before units are available that are `waitMs` away. */
  isTooLate(waitMs: number): boolean {
    const { leftMs } = this;
    return leftMs === 0 || waitMs === Infinity || waitMs > leftMs;
  }

  /** Keeps waiting after a refusal, unless the units, which are at least `waitMs` away, come too late. */
  refuse(refusal: Refusal, waitMs: number): void {
    if (this.settled) return;
    this.refusal = refusal;
    if (this.isTooLate(waitMs)) this.expire();
  }

  /** Keeps waiting for units that one of its limits granted, and that are `ms` away now, unless that is too late. */
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
