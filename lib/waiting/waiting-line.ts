import { MAX_INTERVAL_MS } from '../algorithms/options.js';
import type { Counter, Store, StoreDecision } from '../stores/store.js';
import { Alarm } from './alarm.js';
import { Departures } from './departures.js';
import type { Waiter } from './waiter.js';

/** How many are asked for at once at most. */
const MAX_AT_ONCE = 500;
/** Held units may be released at any time, also by another process: that is looked for ever less often. */
const FIRST_LOOK_MS = 25;
const LAST_LOOK_MS = 1000;

/** Those who wait in this process for one counter: first come, first served, with one call in flight for them all. */
export class WaitingLine {
  private waiters: Waiter[] = [];
  private readonly departures: Departures;
  private running = false;
  /** Units may have become free since they were asked for last. */
  private woken = false;
  /** Ends the sleep until the next try. */
  private wakeUp: (() => void) | undefined;
  private asking: Promise<void> | undefined;
  private lookMs = FIRST_LOOK_MS;
  /** How many units are likely to be there. */
  private room = 0;
  /** Units can be had from the future, so that nobody has to ask twice. */
  private readonly reserves: boolean;
  /** Units can be there sooner than is said. */
  private readonly looks: boolean;

  constructor(
    private readonly counter: Counter,
    private readonly store: Store,
    private readonly onEmpty: () => void,
  ) {
    this.departures = new Departures(() => this.leaveIfEmpty());
    const { algorithm } = counter.limit;
    this.reserves = algorithm.covered !== undefined;
    this.looks = algorithm.renew !== undefined;
  }

  join(waiter: Waiter): void {
    const [head] = this.waiters;
    if (head?.refusal !== undefined && !head.isOver) this.tell(head, head.refusal, [waiter]);
    this.waiters.push(waiter);
    // Who gives up leaves the others to hope.
    waiter.decided.catch(() => {
      if (this.waiters[0] === waiter) this.wake();
    });
    if (!this.running) void this.run();
  }

  /** Units may have become free: looks at once, or once more if a call is in flight. */
  wake(): void {
    this.woken = true;
    this.wakeUp?.();
  }

  /** Resolves when no call is in flight any more: what it takes is given back. */
  async close(reason: Error): Promise<void> {
    for (const waiter of this.waiters) waiter.reject(reason);
    this.departures.close(reason);
    this.wake();
    await this.asking;
  }

  private async run(): Promise<void> {
    this.running = true;
    for (;;) {
      // Those who come in one turn are asked for together.
      await Promise.resolve();
      this.waiters = this.waiters.filter((waiter) => !waiter.isOver);
      const [head] = this.waiters;
      if (head === undefined) break;
      if (head.vainMs > 0) await this.sleepFor(head);
      else await (this.asking = this.ask(this.first()));
    }
    this.running = false;
    this.leaveIfEmpty();
  }

  private leaveIfEmpty(): void {
    if (!this.running && this.departures.isEmpty) this.onEmpty();
  }

  /** Places in the future are had at once by all; else as many are asked for as there is likely to be room. */
  private first(): Waiter[] {
    if (this.reserves) return this.waiters.slice(0, MAX_AT_ONCE);
    let { room } = this;
    const behind = this.waiters.findIndex(({ cost }, index) => (room -= cost) < 0 && index > 0);
    return this.waiters.slice(0, Math.min(behind < 0 ? this.waiters.length : behind, MAX_AT_ONCE));
  }

  private async ask(asked: readonly Waiter[]): Promise<void> {
    this.woken = false;
    const answers = await Promise.allSettled(
      asked.map(({ cost, leftMs }) =>
        this.store.reserve({ ...this.counter, cost, maxWaitMs: Math.min(leftMs, MAX_INTERVAL_MS) }),
      ),
    );
    this.room = 0;
    for (const [index, answer] of answers.entries()) {
      const waiter = asked[index]!;
      if (answer.status === 'rejected') waiter.reject(answer.reason);
      else if (answer.value.allowed) {
        this.waiters.splice(this.waiters.indexOf(waiter), 1);
        waiter.grant(answer.value);
        this.departures.add(waiter, answer.value.delayMs);
        this.room = answer.value.remaining;
        this.lookMs = FIRST_LOOK_MS;
      } else {
        waiter.refuse(answer.value);
        this.tell(waiter, answer.value, this.waiters.slice(this.waiters.indexOf(waiter) + 1));
      }
    }
    if (this.woken) for (const waiter of this.waiters) waiter.hope();
  }

  /** Nobody who wants as much or more is served before one who was refused. */
  private tell({ cost }: Waiter, refusal: StoreDecision, others: readonly Waiter[]): void {
    if (this.reserves) return;
    for (const other of others) if (other.cost >= cost) other.refuse(refusal);
  }

  private async sleepFor(head: Waiter): Promise<void> {
    let ms = head.vainMs;
    if (this.looks) {
      ms = Math.min(ms, this.lookMs);
      this.lookMs = Math.min(this.lookMs * 2, LAST_LOOK_MS);
    }
    await new Promise<void>((resolve) => {
      const alarm = new Alarm(ms, resolve);
      this.wakeUp = () => {
        alarm.clear();
        resolve();
      };
    });
    this.wakeUp = undefined;
    for (const waiter of this.waiters) waiter.hope();
  }
}
