import { isRefusal } from '../limits/check-result.js';
import { type CheckEntry, type Counter, lineageId } from '../limits/counter.js';
import { chargesOf } from '../stores/store-decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { decidedEnforced } from './enforced-entries.js';
import { QueuesByCounter } from './queues-by-counter.js';
import { Waiter, type WaitOptions } from './waiter.js';
import type { WaitingCount } from './waiting-count.js';

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
  private readonly queues = new QueuesByCounter<LevelQueue>();

  constructor(
    private readonly store: Store,
    private readonly count: WaitingCount,
  ) {}

  /**
   * Waits until units of all levels may be used: what they are asked is asked for anew each time. Rejects with `RateLimitTimeoutError`,
   * the signal's reason or the store's error.
   */
  async wait(
    key: string,
    entries: () => readonly CheckEntry[],
    options: WaitOptions,
  ): Promise<readonly StoreDecision[]> {
    const known = this.queues.find(key);
    if (known?.isFull === true || this.count.isFull) {
      const { name } = entries()[0]!.limit;
      throw known?.isFull === true ? this.count.refusal(name) : this.count.refusalOfAll(name);
    }
    this.count.begin();
    const state: { refused: CheckEntry | undefined } = { refused: undefined };
    const waiter = new Waiter(() => (state.refused ?? entries()[0]!).limit, options, this.count.end);
    const asking: LevelWaiter = Object.assign(state, { waiter, entries, answers: [] });
    if (!waiter.isSettled) this.queueOf(key, entries).join(asking);
    await waiter.decided;
    return asking.answers;
  }

  /** Those look again who wait for units of a counter: some may have come back. */
  wake({ limit, identity }: Counter): void {
    if (this.queues.size === 0) return;
    const counter = lineageId(limit, identity);
    for (const queue of this.queues.of(counter)) queue.wakeFor(counter);
  }

  /** All look again. */
  wakeAll(): void {
    for (const queue of this.queues.all) queue.wake();
  }

  /** Rejects all who wait, and resolves once nobody is answered any more. */
  async close(reason: Error): Promise<void> {
    await Promise.all([...this.queues.all].map((queue) => queue.close(reason)));
  }

  private queueOf(key: string, entries: () => readonly CheckEntry[]): LevelQueue {
    const known = this.queues.find(key);
    if (known !== undefined) return known;
    const counters = entries().map(({ limit, identity }) => lineageId(limit, identity));
    return this.queues.add(key, counters, (ended) => new LevelQueue(this.store, this.count, ended));
  }
}

/** Those who wait for one key. */
class LevelQueue {
  /** In the order in which they came. */
  private readonly waiting = new Set<LevelWaiter>();
  /** The counters that refused the first one; nothing while they are asked. */
  private refusedBy: ReadonlySet<string> | undefined;
  private running: Promise<void> | undefined;
  private endSleep: (() => void) | undefined;
  private lookMs = FIRST_LOOK_MS;
  /** Who was asked for last. */
  private asked: LevelWaiter | undefined;
  /** Whether units may have come back since the last look. */
  private isWoken = false;

  constructor(
    private readonly store: Store,
    private readonly count: WaitingCount,
    private readonly onEmpty: () => void,
  ) {}

  /** Whether as many wait as may. */
  get isFull(): boolean {
    return this.waiting.size >= this.count.most;
  }

  join(asking: LevelWaiter): void {
    this.waiting.add(asking);
    asking.waiter.onRejected = () => {
      this.waiting.delete(asking);
      // Those behind it may fit now.
      if (this.asked === asking) this.wake();
    };
    this.running ??= this.run();
  }

  /** Looks again unless only other counters refused. */
  wakeFor(counter: string): void {
    if (this.refusedBy === undefined || this.refusedBy.has(counter)) this.wake();
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
      this.refusedBy = undefined;
      this.asked = first;
      const waitMs = await this.ask(first);
      if (waitMs > 0 && !this.isWoken && !first.waiter.isSettled) await this.sleep(waitMs);
    }
    this.running = undefined;
    this.onEmpty();
  }

  /** The first who still waits. */
  private next(): LevelWaiter | undefined {
    return this.waiting.values().next().value;
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
    this.refusedBy = new Set(refused.map((each) => lineageId(each.entry.limit, each.entry.identity)));
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
    this.waiting.delete(asking);
    waiter.release(answers[0]!);
    return 0;
  }

  /** What cannot be given back comes back by itself in time. */
  private async giveBack(entries: readonly CheckEntry[], answers: readonly StoreDecision[]): Promise<void> {
    await this.store.refund(chargesOf(entries, answers)).catch(() => undefined);
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
