import { listMessages } from '../../errors/messages/list.js';
import { messages } from '../../errors/messages/general.js';
import { isRefusal } from '../../limits/check-result.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';
import { RateLimitTimeoutError } from '../../limiter/rate-limit-timeout.error.js';
import type { OutboundRule } from '../learning/learned-rule.js';
import { toDecision } from '../../stores/store-decision.js';
import type { StoreDecision } from '../../stores/store.js';
import { LongTimeout } from '../../util/long-timeout.js';
import { onAbort } from '../../util/on-abort.js';

/** What a call asks of one of its limits. */
export interface TurnEntry {
  readonly rule: OutboundRule;
  readonly identity: string;
  readonly cost: number;
}

/** Is told before limits are asked, and once they have answered; the costs are those of all calls that are asked for together. */
export interface AskWatcher {
  ask(entries: readonly CheckEntry[]): Promise<void>;
  asked(entries: readonly CheckEntry[]): void;
}

/** How a call waits. */
export interface TurnOptions {
  /** The longest wait, for errors; from `since`. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** When the call came, in milliseconds of the monotonic clock: earlier ones go first. */
  readonly since: number;
  /** It must not go out before, nor do those behind it; in milliseconds of the monotonic clock. */
  readonly notBefore: number;
  /** Is told of what is asked of its limits, once for all calls that are asked for together. */
  readonly watcher?: AskWatcher | undefined;
  /** So many milliseconds is it put before those that came when it did. */
  readonly aheadMs: number;
}

/** What a call got: the decisions of all of its limits, and what they were asked. */
export interface TakenTurn {
  readonly entries: readonly CheckEntry[];
  readonly decisions: readonly StoreDecision[];
}

/** A refusal, with the limit that refused for the longest time. */
export interface TurnRefusal extends Counter {
  readonly cost: number;
  readonly decision: StoreDecision;
}

/** A call that waits for its turn at all of its limits: until it has it, its time is over, or its signal aborts. */
export class WaitingCall {
  /** The call with the lowest one goes first. */
  readonly rank: number;
  /** In milliseconds of the monotonic clock. */
  readonly deadline: number;
  readonly taken: Promise<TakenTurn>;
  /** Is called once, if the wait ends without a turn. */
  onRejected: () => void = () => undefined;
  private refusal: TurnRefusal | undefined;
  private settled = false;
  private readonly timeout: LongTimeout;
  private readonly unsubscribe: (() => void) | undefined;
  private resolve!: (turn: TakenTurn) => void;
  private rejectWith!: (reason: unknown) => void;

  constructor(
    private readonly asks: readonly TurnEntry[],
    private readonly options: TurnOptions,
  ) {
    const { since, aheadMs, timeoutMs, signal } = options;
    this.rank = since - aheadMs;
    this.deadline = since + timeoutMs;
    this.taken = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.rejectWith = reject;
    });
    const { leftMs } = this;
    // A call without any time is ended by its first refusal, not by a timer.
    this.timeout = new LongTimeout(leftMs === 0 ? Infinity : leftMs, () => this.expire());
    if (signal?.aborted === true) this.abort();
    else if (signal !== undefined) this.unsubscribe = onAbort(signal, () => this.abort());
  }

  get isSettled(): boolean {
    return this.settled;
  }

  /** The name of its first limit, for errors. */
  get name(): string {
    return this.asks[0]!.rule.name;
  }

  /** The time that is left, in milliseconds. */
  get leftMs(): number {
    return Math.max(0, this.deadline - performance.now());
  }

  /** What it asks of the limits that are in force now. */
  get entries(): CheckEntry[] {
    return this.asks.map(({ rule, identity, cost }) => {
      return { limit: rule.usualLimit(identity), identity, cost, priority: rule.fixedPriority };
    });
  }

  /** Neither it nor those behind it go out before; in milliseconds of the monotonic clock. */
  get notBefore(): number {
    return this.options.notBefore;
  }

  /** Is told of what is asked of its limits. */
  get watcher(): AskWatcher | undefined {
    return this.options.watcher;
  }

  /** Whether it asks as much as another call of the same queue, or more, of every limit. */
  asksAtLeast({ asks }: WaitingCall): boolean {
    return this.asks.every(({ cost }, index) => cost >= asks[index]!.cost);
  }

  /** The units that it asks of a limit. */
  costOf(index: number): number {
    return this.asks[index]!.cost;
  }

  /** Ends the wait with its turn. Says whether it still waited. */
  take(turn: TakenTurn): boolean {
    if (this.settled) return false;
    this.settle(() => this.resolve(turn));
    return true;
  }

  /** Goes on waiting after a refusal, unless its turn, which is `waitMs` away or more, comes too late. */
  refuse(refusal: TurnRefusal, waitMs: number): void {
    if (this.settled) return;
    this.refusal = refusal;
    const { leftMs } = this;
    if (leftMs === 0 || waitMs > leftMs || waitMs === Infinity) this.expire();
  }

  /** Ends the wait without a turn. */
  reject(reason: unknown): void {
    if (this.settled) return;
    this.settle(() => this.rejectWith(reason));
    this.onRejected();
  }

  private expire(): void {
    const { asks, refusal, options } = this;
    if (refusal === undefined) {
      const message = messages.timedOut(asks[0]!.rule.name, options.timeoutMs);
      this.reject(new RateLimitTimeoutError(message));
      return;
    }
    const { limit, cost, decision } = refusal;
    const message =
      decision.source === 'list'
        ? listMessages.deniedKey(limit.name)
        : decision.retryAfterMs === Infinity
          ? messages.neverFits(limit.name, cost, decision.quota)
          : messages.timedOut(limit.name, options.timeoutMs);
    this.reject(new RateLimitTimeoutError(message, toDecision(decision)));
  }

  private abort(): void {
    this.reject(this.options.signal?.reason);
  }

  private settle(settlePromise: () => void): void {
    this.settled = true;
    this.timeout?.clear();
    this.unsubscribe?.();
    settlePromise();
  }
}

/** The limit that refused a call for the longest time; nothing if all let it pass. */
export function refusalOf({ entries, decisions }: TakenTurn): TurnRefusal | undefined {
  let longest: TurnRefusal | undefined;
  for (const [index, decision] of decisions.entries()) {
    const { limit, identity, cost } = entries[index]!;
    if (!isRefusal(limit, decision)) continue;
    if (longest !== undefined && longest.decision.retryAfterMs >= decision.retryAfterMs) continue;
    longest = { limit, identity, cost, decision };
  }
  return longest;
}

/** How long queues of the limits hold a call that they let pass. */
export function delayOf({ entries, decisions }: TakenTurn): number {
  return Math.max(0, ...decisions.map(({ delayMs }, index) => (entries[index]!.limit.shadow ? 0 : delayMs)));
}

/** Whether what refused a call may let it pass at any time: held units are released, and an upstream's units are told. */
export function isPolled({ entries, decisions }: TakenTurn, { watcher }: WaitingCall): boolean {
  return decisions.every(({ allowed, retryAfterMs }, index) => {
    const { shadow, algorithm } = entries[index]!.limit;
    return allowed || shadow || (retryAfterMs < Infinity && (watcher !== undefined || algorithm.holding !== undefined));
  });
}
