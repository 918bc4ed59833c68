import type { CompiledLimit } from '../limits/compiled-limit.js';
import { toDecision } from '../stores/store-decision.js';
import { messages } from '../errors/messages.js';
import type { StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { onAbort } from '../util/on-abort.js';
import { RateLimitTimeoutError } from './rate-limit-timeout.error.js';

/** What is waited for, and how long. */
export interface WaitOptions {
  readonly cost: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Someone who waits for units: until they are there, the time is over, or the signal says so. */
export class Waiter {
  readonly cost: number;
  readonly decided: Promise<StoreDecision>;
  /** Is called once if the units are not waited for any more. */
  onGivenUp: () => void = () => undefined;
  /** The last decision. */
  private last: StoreDecision | undefined;
  private over = false;
  /** When its time is over, in milliseconds of the monotonic clock. */
  readonly deadline: number;
  private timeout: LongTimeout;
  private readonly forgetSignal: (() => void) | undefined;
  private resolve!: (decision: StoreDecision) => void;
  private rejectWith!: (reason: unknown) => void;

  constructor(
    /** The limit that holds now. */
    readonly limit: () => CompiledLimit,
    private readonly options: WaitOptions,
  ) {
    const { cost, timeoutMs, signal } = options;
    this.cost = cost;
    this.deadline = performance.now() + timeoutMs;
    this.decided = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.rejectWith = reject;
    });
    // Without any time, the first refusal ends it.
    this.timeout = new LongTimeout(timeoutMs === 0 ? Infinity : timeoutMs, this.expire);
    if (signal?.aborted === true) this.abort();
    else if (signal !== undefined) this.forgetSignal = onAbort(signal, this.abort);
  }

  /** Whether nobody waits any more. */
  get isOver(): boolean {
    return this.over;
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.deadline - performance.now());
  }

  /** The units are taken, and there in time: what they are waited for is all that can end it now. */
  grant(): void {
    this.timeout.clear();
  }

  /** They are not taken any more. */
  revoke(): void {
    if (!this.over && this.options.timeoutMs > 0) this.timeout = new LongTimeout(this.leftMs, this.expire);
  }

  /** The time of its units has come. */
  release(decision: StoreDecision): void {
    if (!this.over) this.finish(() => this.resolve(decision));
  }

  /** Whether a refusal, of as much or less, says that the units are not there in time. */
  isHopeless(decision: StoreDecision): boolean {
    const { leftMs } = this;
    const waitMs = leastWaitMs(this.limit(), decision, this.cost);
    return leftMs === 0 || waitMs === Infinity || waitMs > leftMs;
  }

  /** The units are not there yet. Ends at once what would be waited for in vain. */
  refuse(decision: StoreDecision): void {
    if (this.over) return;
    this.last = decision;
    if (this.isHopeless(decision)) this.expire();
  }

  /** The units were to be there in time, but will not before then. */
  postpone(decision: StoreDecision, ms: number): void {
    if (ms > this.leftMs) this.refuse({ ...decision, allowed: false, retryAfterMs: Math.ceil(ms), delayMs: 0 });
  }

  /** Ends the wait. */
  reject(reason: unknown): void {
    if (this.over) return;
    this.finish(() => this.rejectWith(reason));
    this.onGivenUp();
  }

  private readonly expire = (): void => {
    const { cost, last, options } = this;
    const { name } = this.limit();
    const message =
      last?.retryAfterMs === Infinity
        ? messages.neverFits(name, cost, last.quota)
        : messages.waitedInVain(name, options.timeoutMs);
    this.reject(new RateLimitTimeoutError(message, last && toDecision(last)));
  };

  private readonly abort = (): void => {
    this.reject(this.options.signal?.reason);
  };

  private finish(settle: () => void): void {
    this.over = true;
    this.timeout.clear();
    this.forgetSignal?.();
    settle();
  }
}

/** How long units have to be waited for at least after a refusal, `Infinity` if for ever. */
export function leastWaitMs(
  { algorithm, parameters }: CompiledLimit,
  { retryAfterMs, resetAfterMs }: StoreDecision,
  cost: number,
): number {
  if (retryAfterMs === Infinity) return Infinity;
  // What is held can be released at any time.
  if (algorithm.holding !== undefined) return 0;
  // Once there is room in a queue, that is waited for, too.
  const spacingMs = (algorithm.queue?.spacing(parameters) ?? 0) / 1000;
  return Math.max(retryAfterMs, spacingMs > 0 ? resetAfterMs + (cost - 1) * spacingMs : 0);
}
