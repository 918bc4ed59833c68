import { MAX_INTERVAL_MS } from '../algorithms/options.js';
import { refundOf } from '../stores/store-decision.js';
import type { Refund, Store, StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { ReservedQueue, type ReservedUnits } from './reserved-queue.js';
import { leastWaitMs, type Waiter } from './waiter.js';

/** How many are asked for at once at most. */
const MAX_AT_ONCE = 500;
/** Held units may be released at any time, also by another process: that is looked for ever less often. */
const FIRST_POLL_MS = 25;
const LAST_POLL_MS = 1000;

/** What the first in line was told last. */
interface Refusal {
  readonly waiter: Waiter;
  readonly decision: StoreDecision;
  /** Before then it is in vain to ask again, in milliseconds of the monotonic clock. */
  readonly until: number;
}

/** What a line needs of those who wait in it, and of where it stands. */
export interface WaitQueueOptions {
  readonly identity: string;
  readonly store: Store;
  /** Gives units back, and tells the line when that is done. */
  readonly giveBack: (refunds: readonly Refund[]) => void;
  readonly onEmpty: () => void;
}

/** Those who wait in this process for one counter: first come, first served, with one call in flight for them all. */
export class WaitQueue {
  /** Those whose units are not taken yet, and with which number they came. */
  private waiters = new Map<Waiter, number>();
  private joined = 0;
  /** Nobody of them has less time, or asks for more. */
  private soonest = Infinity;
  private costliest = 1;
  private readonly reserved: ReservedQueue;
  private running = false;
  /** It may be worth to ask again. */
  private woken = false;
  /** Ends the sleep until the next try. */
  private wakeUp: (() => void) | undefined;
  private asking: Promise<void> | undefined;
  private refusal: Refusal | undefined;
  private pollMs = FIRST_POLL_MS;
  /** How many units are likely to be there. */
  private room: number;

  constructor(
    first: Waiter,
    private readonly options: WaitQueueOptions,
  ) {
    this.reserved = new ReservedQueue(
      (reserved) => options.giveBack(reserved.map((units) => this.refundOf(units))),
      () => this.leaveIfEmpty(),
    );
    this.room = this.mostRoom(first);
  }

  join(waiter: Waiter): void {
    this.waiters.set(waiter, this.joined++);
    this.soonest = Math.min(this.soonest, waiter.deadline);
    this.costliest = Math.max(this.costliest, waiter.cost);
    waiter.onGivenUp = () => {
      this.waiters.delete(waiter);
      // Those behind it are not kept waiting any more.
      if (this.refusal?.waiter === waiter) this.wake();
    };
    // What others were told may not be true any more: it rejects nobody.
    if (this.asking === undefined && this.refusal !== undefined && waiter.isHopeless(asOfNow(this.refusal)))
      this.wake();
    if (!this.running) void this.run();
  }

  /** Units may have become free: looks at once, or once more if a call is in flight. */
  wake(): void {
    this.woken = true;
    this.wakeUp?.();
  }

  /** The limit of those who wait may have changed. */
  follow(): void {
    if (this.reserved.isForgotten) return this.restart();
    const moved = this.reserved.follow();
    if (moved !== undefined) {
      // What is owed flows at the new rate from now on, although nobody asks.
      this.options.giveBack([{ ...this.refundOf(moved), units: 0 }]);
    }
    this.wake();
  }

  /** What was taken for those who wait is forgotten: they ask anew. */
  restart(): void {
    const waiting = [...this.reserved.recall().waiters, ...this.waiters.keys()];
    this.waiters = new Map();
    for (const waiter of waiting) if (!waiter.isOver) this.join(waiter);
    if (this.waiters.size > 0) this.wake();
    this.leaveIfEmpty();
  }

  /** Takes out those for whom places are taken, and what gives these back. */
  recall(): { waiters: Waiter[]; refunds: Refund[] } {
    const { waiters, reserved } = this.reserved.recall();
    for (const waiter of waiters) waiter.onGivenUp = () => undefined;
    this.leaveIfEmpty();
    return { waiters, refunds: reserved.map((units) => this.refundOf(units)) };
  }

  /** Resolves when no call is in flight any more: what it takes is given back. */
  async close(reason: Error): Promise<void> {
    for (const waiter of this.waiters.keys()) waiter.reject(reason);
    this.reserved.close(reason);
    this.wake();
    await this.asking;
    this.reserved.close(reason);
  }

  private async run(): Promise<void> {
    this.running = true;
    for (;;) {
      // Those who come in one turn are asked for together.
      await Promise.resolve();
      if (this.waiters.size === 0) break;
      const { refusal } = this;
      if (!this.woken && refusal !== undefined && refusal.until > performance.now()) await this.sleep(refusal);
      await (this.asking = this.ask());
      this.asking = undefined;
    }
    this.running = false;
    this.leaveIfEmpty();
  }

  private leaveIfEmpty(): void {
    if (!this.running && this.waiters.size === 0 && this.reserved.isEmpty) this.options.onEmpty();
  }

  /** As many as there is likely to be room for, and one at least. */
  private next(): Waiter[] {
    let { room } = this;
    const next: Waiter[] = [];
    for (const waiter of this.waiters.keys()) {
      room -= waiter.cost;
      if (next.length > 0 && (room < 0 || next.length === MAX_AT_ONCE)) break;
      next.push(waiter);
    }
    return next;
  }

  /** Places in the future can be had at once by all. */
  private mostRoom(waiter: Waiter): number {
    return waiter.limit().algorithm.reservation === undefined ? 0 : Infinity;
  }

  private async ask(): Promise<void> {
    this.woken = false;
    this.refusal = undefined;
    const { joined } = this;
    const refused = await this.askFor(this.next());
    this.room = refused === undefined ? this.room : 0;
    if (refused !== undefined) {
      const { waiter: head, decision } = refused;
      this.refusal = { ...refused, until: performance.now() + decision.retryAfterMs };
      const others = this.hopeless(head, decision);
      // Who cannot wait for the first one asks for less at least.
      const impatient: Waiter[] = [];
      for (const [waiter, number] of others) {
        if (number >= joined) this.woken = true;
        else if (waiter.cost < head.cost) impatient.push(waiter);
        else waiter.refuse(decision);
      }
      for (let at = 0; at < impatient.length; at += MAX_AT_ONCE) {
        await this.askFor(impatient.slice(at, at + MAX_AT_ONCE));
      }
    }
  }

  /** Who waits in vain after a refusal. All are looked at only if there may be such. */
  private hopeless({ limit }: Waiter, decision: StoreDecision): [Waiter, number][] {
    const now = performance.now();
    const waitMs = leastWaitMs(limit(), decision, this.costliest);
    if (waitMs < Infinity && this.soonest > now && this.soonest - now >= waitMs) return [];
    const all = [...this.waiters];
    this.soonest = all.reduce((soonest, [{ deadline }]) => Math.min(soonest, deadline), Infinity);
    this.costliest = all.reduce((costliest, [{ cost }]) => Math.max(costliest, cost), 1);
    return all.filter(([waiter]) => waiter.isHopeless(decision));
  }

  /** Asks for several in one turn. Tells what the first of them was told that still waits. */
  private async askFor(asked: readonly Waiter[]): Promise<Omit<Refusal, 'until'> | undefined> {
    const { identity, store } = this.options;
    const limits = asked.map((waiter) => waiter.limit());
    const answers = await Promise.allSettled(
      asked.map(({ cost, leftMs }, index) =>
        store.reserve({ limit: limits[index]!, identity, cost, maxWaitMs: Math.min(leftMs, MAX_INTERVAL_MS) }),
      ),
    );
    let refused: Omit<Refusal, 'until'> | undefined;
    for (const [index, answer] of answers.entries()) {
      const waiter = asked[index]!;
      if (answer.status === 'rejected') waiter.reject(answer.reason);
      else if (answer.value.allowed) {
        this.waiters.delete(waiter);
        this.reserved.add(waiter, limits[index]!, answer.value);
        this.room = Math.max(answer.value.remaining, this.mostRoom(waiter));
        this.pollMs = FIRST_POLL_MS;
      } else {
        waiter.refuse(answer.value);
        if (!waiter.isOver) refused ??= { waiter, decision: answer.value };
      }
    }
    // The limit may have changed meanwhile.
    if (asked.some((waiter, index) => waiter.limit() !== limits[index])) this.follow();
    return refused;
  }

  private async sleep({ waiter, until }: Refusal): Promise<void> {
    let ms = until - performance.now();
    if (waiter.limit().algorithm.holding !== undefined) {
      ms = Math.min(ms, this.pollMs);
      this.pollMs = Math.min(this.pollMs * 2, LAST_POLL_MS);
    }
    await new Promise<void>((resolve) => {
      const alarm = new LongTimeout(ms, resolve);
      this.wakeUp = () => {
        alarm.clear();
        resolve();
      };
    });
    this.wakeUp = undefined;
  }

  private refundOf({ limit, units, decision }: ReservedUnits): Refund {
    return refundOf({ limit, identity: this.options.identity, units }, decision);
  }
}

function asOfNow({ decision, until }: Refusal): StoreDecision {
  return { ...decision, retryAfterMs: Math.max(0, Math.ceil(until - performance.now())) };
}
