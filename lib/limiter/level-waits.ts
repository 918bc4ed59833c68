import { isRefusal } from '../limits/check-result.js';
import type { CheckEntry } from '../limits/counter.js';
import { refundsOf } from '../stores/store-decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { decidedEnforced } from './enforced-entries.js';
import { Waiter, type WaitOptions } from './waiter.js';

/** The times between looks for held units, which may be released at any time: each is twice the last. */
const FIRST_LOOK_MS = 25;
const LAST_LOOK_MS = 1000;

/** A call that waits for units of all levels. */
interface LevelWaiter {
  readonly waiter: Waiter;
  readonly entries: () => readonly CheckEntry[];
  /** What every level said when it let the call pass. */
  answers: readonly StoreDecision[];
  /** The entry that refused last. */
  refused: CheckEntry | undefined;
}

/** The calls of this process that wait for units of a limit that is within others: first come, first served for each key. */
export class LevelWaits {
  private readonly queues = new Map<string, LevelQueue>();

  constructor(private readonly store: Store) {}

  /**
   * Waits until units of all levels may be used: what they are asked is asked for anew each time. Rejects with `RateLimitTimeoutError`,
   * the signal's reason or the store's error.
   */
  async wait(
    key: string,
    entries: () => readonly CheckEntry[],
    options: WaitOptions,
  ): Promise<readonly StoreDecision[]> {
    const state: { refused: CheckEntry | undefined } = { refused: undefined };
    const waiter = new Waiter(() => (state.refused ?? entries()[0]!).limit, options);
    const asking: LevelWaiter = Object.assign(state, { waiter, entries, answers: [] });
    if (!waiter.isSettled) this.queueOf(key).join(asking);
    await waiter.decided;
    return asking.answers;
  }

  /** Looks again: units may have come back. */
  wake(): void {
    for (const queue of this.queues.values()) queue.wake();
  }

  /** Rejects all who wait, and resolves once nobody is answered any more. */
  async close(reason: Error): Promise<void> {
    await Promise.all([...this.queues.values()].map((queue) => queue.close(reason)));
  }

  private queueOf(key: string): LevelQueue {
    let queue = this.queues.get(key);
    if (queue === undefined) {
      const created = new LevelQueue(this.store, () => this.queues.get(key) === created && this.queues.delete(key));
      this.queues.set(key, (queue = created));
    }
    return queue;
  }
}

/** Those who wait for one key. */
class LevelQueue {
  private readonly waiting: LevelWaiter[] = [];
  private running: Promise<void> | undefined;
  private endSleep: (() => void) | undefined;
  private lookMs = FIRST_LOOK_MS;
  /** Whether units may have come back since the last look. */
  private isWoken = false;

  constructor(
    private readonly store: Store,
    private readonly onEmpty: () => void,
  ) {}

  join(asking: LevelWaiter): void {
    this.waiting.push(asking);
    asking.waiter.onRejected = () => {
      if (this.waiting[0] === asking) this.wake();
    };
    this.running ??= this.run();
  }

  wake(): void {
    this.isWoken = true;
    this.endSleep?.();
  }

  async close(reason: Error): Promise<void> {
    for (const { waiter } of this.waiting) waiter.reject(reason);
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    for (let first = this.next(); first !== undefined; first = this.next()) {
      this.isWoken = false;
      const waitMs = await this.ask(first);
      if (waitMs > 0 && !this.isWoken && !first.waiter.isSettled) await this.sleep(waitMs);
    }
    this.running = undefined;
    this.onEmpty();
  }

  /** The first who still waits. */
  private next(): LevelWaiter | undefined {
    while (this.waiting[0]?.waiter.isSettled === true) this.waiting.shift();
    return this.waiting[0];
  }

  /** Asks all levels, and returns how long to wait before the next look. */
  private async ask(asking: LevelWaiter): Promise<number> {
    const { waiter } = asking;
    let entries: readonly CheckEntry[];
    let answers: readonly StoreDecision[];
    try {
      entries = asking.entries();
      answers = await decidedEnforced(this.store, { entries, refundable: true });
    } catch (error) {
      waiter.reject(error);
      return 0;
    }
    const refusing = entries.map((entry, index) => ({ entry, answer: answers[index]! }));
    const refused = refusing.filter(({ entry, answer }) => isRefusal(entry.limit, answer));
    if (refused.length === 0) return this.release(asking, entries, answers);
    const { entry, answer } = refused.reduce((one, other) =>
      other.answer.retryAfterMs > one.answer.retryAfterMs ? other : one,
    );
    asking.refused = entry;
    waiter.refuse(answer);
    const isHeld = refused.some((each) => each.entry.limit.algorithm.holding !== undefined);
    if (!isHeld) return Math.max(1, answer.retryAfterMs);
    this.lookMs = Math.min(2 * this.lookMs, LAST_LOOK_MS);
    return Math.max(1, Math.min(answer.retryAfterMs, this.lookMs));
  }

  /** Lets a call go on once all queues let it. */
  private async release(
    asking: LevelWaiter,
    entries: readonly CheckEntry[],
    answers: readonly StoreDecision[],
  ): Promise<number> {
    const { waiter } = asking;
    this.lookMs = FIRST_LOOK_MS;
    const delayMs = Math.max(...answers.map((answer, index) => (entries[index]!.limit.shadow ? 0 : answer.delayMs)));
    if (delayMs > 0 && !waiter.isSettled) {
      waiter.postpone(answers[0]!, delayMs);
      if (!waiter.isSettled) await this.sleep(delayMs, () => waiter.isSettled);
    }
    if (waiter.isSettled) {
      await this.giveBack(entries, answers);
      return 0;
    }
    asking.answers = answers;
    waiter.release(answers[0]!);
    return 0;
  }

  /** What cannot be given back comes back by itself in time. */
  private async giveBack(entries: readonly CheckEntry[], answers: readonly StoreDecision[]): Promise<void> {
    await this.store.refund(refundsOf(entries, answers)).catch(() => undefined);
  }

  /** Sleeps until it is woken, or, if that has to be for something, until that is so. */
  private sleep(ms: number, isOver: () => boolean = () => true): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timeout.clear();
        this.endSleep = undefined;
        resolve();
      };
      const timeout = new LongTimeout(ms, end);
      this.endSleep = () => {
        if (isOver()) end();
      };
    });
  }
}
