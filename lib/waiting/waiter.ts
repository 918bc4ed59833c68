import { toDecision } from '../check-result.js';
import { messages } from '../errors/messages.js';
import type { StoreDecision } from '../stores/store.js';
import { Alarm } from './alarm.js';
import { RateLimitTimeoutError } from './rate-limit-timeout.error.js';

export interface WaiterOptions {
  readonly name: string;
  readonly cost: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** Units may be there sooner than a decision says: what is held can be released at any time. */
  readonly maybeSooner: boolean;
  /** Units leave so many milliseconds apart once there is room for them: that is waited for, too. */
  readonly spacingMs: number | undefined;
  /** Gives back what came too late. */
  readonly giveBack: (decision: StoreDecision) => void;
}

/** Someone who waits for units: until they are there, the time is over, or the signal says so. */
export class Waiter {
  readonly cost: number;
  readonly decided: Promise<StoreDecision>;
  /** The last decision. */
  private last: StoreDecision | undefined;
  private notBefore = 0;
  private granted = false;
  private over = false;
  private readonly deadline: number;
  private readonly timeout: Alarm;
  private resolve!: (decision: StoreDecision) => void;
  private rejectWith!: (reason: unknown) => void;

  constructor(private readonly options: WaiterOptions) {
    const { cost, timeoutMs, signal } = options;
    this.cost = cost;
    this.deadline = performance.now() + timeoutMs;
    this.decided = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.rejectWith = reject;
    });
    // Without any time, the first refusal ends it.
    this.timeout = new Alarm(timeoutMs === 0 ? Infinity : timeoutMs, this.expire);
    signal?.addEventListener('abort', this.abort);
    if (signal?.aborted === true) this.abort();
  }

  /** Whether nobody waits any more. */
  get isOver(): boolean {
    return this.over;
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.deadline - performance.now());
  }

  /** Milliseconds before which it is in vain to ask again. */
  get vainMs(): number {
    return Math.max(0, this.notBefore - performance.now());
  }

  /** It may be worth to ask again. */
  hope(): void {
    this.notBefore = 0;
  }

  /** What it was told last, as of now. */
  get refusal(): StoreDecision | undefined {
    const { vainMs } = this;
    return this.last !== undefined && vainMs > 0 ? { ...this.last, retryAfterMs: Math.ceil(vainMs) } : undefined;
  }

  /** The units are taken, to be used once it is let go. */
  grant(decision: StoreDecision): void {
    if (this.over) {
      this.options.giveBack(decision);
      return;
    }
    this.last = decision;
    this.granted = true;
  }

  /** The time of its units has come. */
  letGo(): void {
    const { last } = this;
    if (!this.over && last !== undefined) this.finish(() => this.resolve(last));
  }

  /** The units are not there before the decision's wait is over. Ends at once what would wait in vain. */
  refuse(decision: StoreDecision): void {
    if (this.over) return;
    const { leftMs, cost } = this;
    const { maybeSooner, spacingMs } = this.options;
    const { retryAfterMs, resetAfterMs } = decision;
    this.last = decision;
    this.notBefore = performance.now() + retryAfterMs;
    const waitMs =
      spacingMs === undefined ? retryAfterMs : Math.max(retryAfterMs, resetAfterMs + (cost - 1) * spacingMs);
    if (leftMs === 0 || waitMs === Infinity || (waitMs > leftMs && !maybeSooner)) this.expire();
  }

  /** Ends the wait. Units that it got already are given back. */
  reject(reason: unknown): void {
    if (this.over) return;
    if (this.granted && this.last !== undefined) this.options.giveBack(this.last);
    this.finish(() => this.rejectWith(reason));
  }

  private readonly expire = (): void => {
    const message = messages.waitedInVain(this.options.name, this.options.timeoutMs);
    this.reject(new RateLimitTimeoutError(message, this.last && toDecision(this.last)));
  };

  private readonly abort = (): void => {
    this.reject(this.options.signal?.reason);
  };

  private finish(settle: () => void): void {
    this.over = true;
    this.timeout.clear();
    this.options.signal?.removeEventListener('abort', this.abort);
    settle();
  }
}
