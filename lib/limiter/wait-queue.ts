import { MAX_INTERVAL_MS } from '../algorithms/options.js';
import { messages } from '../errors/messages.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import { openDecision, refundOf } from '../stores/store-decision.js';
import type { ListVerdicts } from '../stores/layers/list.store.js';
import type { Refund, Store, StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { MAX_BATCH, PendingWaiters } from './pending-waiters.js';
import { ReservedQueue } from './reserved-queue.js';
import type { ReservedUnits } from './reserved-units.js';
import type { Waiter } from './waiter.js';

/** The times between polls for held units, which may be released at any time, also by another process: each is twice the last. */
const FIRST_POLL_MS = 25;
const LAST_POLL_MS = 1000;

/** The last refusal of the first waiter. */
interface Refusal {
  readonly waiter: Waiter;
  /** The limit that refused. */
  readonly limit: CompiledLimit;
  readonly decision: StoreDecision;
  /** In milliseconds of the monotonic clock. Before, a retry is refused again. */
  readonly retryAt: number;
}

/** The counter of a queue, its store, and callbacks. */
export interface WaitQueueOptions {
  readonly identity: string;
  readonly store: Store;
  /** Refunds units, and wakes the queue when that is done. */
  readonly refund: (refunds: readonly Refund[]) => void;
  readonly onEmpty: () => void;
}

/** The queue of one counter in this process: first come, first served, with one call in flight for all waiters. */
export class WaitQueue {
  private readonly pending = new PendingWaiters();
  private readonly reserved: ReservedQueue;
  private running = false;
  /** Whether units may have become free since the last call. */
  private retryNow = false;
  /** Ends the sleep until the next call. */
  private endSleep: (() => void) | undefined;
  private inFlight: Promise<void> | undefined;
  private refusal: Refusal | undefined;
  private pollMs = FIRST_POLL_MS;
  /** The units that the next call is likely to get. */
  private likelyUnits: number;
  private readonly limit: () => CompiledLimit;

  constructor(
    first: Waiter,
    private readonly options: WaitQueueOptions,
  ) {
    this.reserved = new ReservedQueue(
      (reserved) => options.refund(reserved.map((units) => this.refundOf(units))),
      () => this.endIfEmpty(),
    );
    this.likelyUnits = unitsAhead(first);
    this.limit = first.limit;
  }

  join(waiter: Waiter): void {
    this.pending.add(waiter);
    waiter.onRejected = () => {
      this.pending.delete(waiter);
      // The waiters behind it may fit now.
      if (this.refusal?.waiter === waiter) this.wake();
    };
    // A former refusal may be out of date: it causes a retry, and rejects no one.
    if (this.inFlight === undefined && this.refusal !== undefined && waiter.timesOutBy(asOfNow(this.refusal)))
      this.wake();
    if (!this.running) void this.run();
  }

  /** Retries now, or after the call in flight: units may have become free. */
  wake(): void {
    this.retryNow = true;
    this.endSleep?.();
  }

  /** Takes over changed limits, unless all changes were those of other keys. */
  onLimitChanged(): void {
    if (!this.isRefusedByOther && !this.reserved.hasOtherLimit) return;
    if (this.reserved.isForgotten) return this.restart();
    if (this.reserved.isOpen) return this.refundReserved();
    const converted = this.reserved.convert();
    if (converted !== undefined) {
      // A refund of nothing makes the store convert the counter now: its debt is paid off at the new rate from here on.
      this.options.refund([{ ...this.refundOf(converted), units: 0 }]);
    }
    this.wake();
  }

  /** Asks anew if a list decides from now on: it lets all of them go, or refuses them. */
  onListsChanged(lists: ListVerdicts): void {
    if (lists.verdict(this.limit(), this.options.identity, undefined) !== undefined) this.refundReserved();
  }

  /** Refunds all reserved units: nobody waits for units of the future any more. */
  private refundReserved(): void {
    const { waiters, reserved } = this.reserved.drain();
    if (reserved.length > 0) this.options.refund(reserved.map((units) => this.refundOf(units)));
    for (const waiter of waiters) if (!waiter.isSettled) this.join(waiter);
    this.wake();
  }

  /** Forgets all reserved units, and reserves them anew. */
  restart(): void {
    const waiters = [...this.reserved.drain().waiters, ...this.pending.drain()];
    for (const waiter of waiters) if (!waiter.isSettled) this.join(waiter);
    if (this.pending.size > 0) this.wake();
    this.endIfEmpty();
  }

  /** Takes out the waiters with reserved units, and the refunds of these. */
  drainReserved(): { waiters: Waiter[]; refunds: Refund[] } {
    const { waiters, reserved } = this.reserved.drain();
    for (const waiter of waiters) waiter.onRejected = () => undefined;
    this.endIfEmpty();
    return { waiters, refunds: reserved.map((units) => this.refundOf(units)) };
  }

  /** Rejects all waiters. Resolves after the call in flight, whose units are refunded. */
  async close(reason: Error): Promise<void> {
    this.pending.rejectAll(reason);
    this.reserved.close(reason);
    this.wake();
    await this.inFlight;
    this.reserved.close(reason);
  }

  private async run(): Promise<void> {
    this.running = true;
    for (;;) {
      // Waiters that come in one turn share a call.
      await Promise.resolve();
      if (this.pending.size === 0) break;
      const { refusal } = this;
      if (!this.retryNow && refusal !== undefined && refusal.retryAt > performance.now()) await this.sleep(refusal);
      await (this.inFlight = this.reserveNext());
      this.inFlight = undefined;
    }
    this.running = false;
    this.endIfEmpty();
  }

  /** Whether the first waiter waits because of another limit than the one in force now, or for an answer. */
  private get isRefusedByOther(): boolean {
    const { pending, refusal } = this;
    return pending.size > 0 && (refusal === undefined || refusal.waiter.limit() !== refusal.limit);
  }

  private endIfEmpty(): void {
    if (!this.running && this.pending.size === 0 && this.reserved.isEmpty) this.options.onEmpty();
  }

  /** Reserves units for the first waiters. After a refusal, reserves them for later ones that cost less and cannot wait. */
  private async reserveNext(): Promise<void> {
    this.retryNow = false;
    this.refusal = undefined;
    const { nextNumber } = this.pending;
    const refused = await this.reserve(this.pending.batch(this.likelyUnits));
    if (refused === undefined) return;
    this.likelyUnits = 0;
    const { waiter: first, decision } = refused;
    this.refusal = { ...refused, retryAt: performance.now() + decision.retryAfterMs };
    const impatient: Waiter[] = [];
    for (const [waiter, number] of this.pending.timedOutBy(decision, first)) {
      // The refusal may be older than a waiter that came meanwhile.
      if (number >= nextNumber) this.retryNow = true;
      else if (waiter.cost < first.cost) impatient.push(waiter);
      else waiter.refuse(decision);
    }
    for (let index = 0; index < impatient.length; index += MAX_BATCH) {
      await this.reserve(impatient.slice(index, index + MAX_BATCH));
    }
  }

  /** Reserves units for several waiters in one turn. Returns the first refusal whose waiter goes on waiting. */
  private async reserve(waiters: readonly Waiter[]): Promise<Omit<Refusal, 'retryAt'> | undefined> {
    const { identity, store } = this.options;
    const limits = waiters.map((waiter) => waiter.limit());
    const answers = await Promise.allSettled(
      // A store of the user's own may also throw, or give no decision: then that call fails, and not the process.
      waiters.map(async ({ cost, priority, leftMs }, index) => {
        const maxWaitMs = Math.min(leftMs, MAX_INTERVAL_MS);
        const limit = limits[index]!;
        if (limit.off) return openDecision(limit);
        const answer: unknown = await store.reserve({ limit, identity, cost, priority, maxWaitMs });
        return asDecision(answer);
      }),
    );
    let refused: Omit<Refusal, 'retryAt'> | undefined;
    for (const [index, answer] of answers.entries()) {
      const waiter = waiters[index]!;
      if (answer.status === 'rejected') waiter.reject(answer.reason);
      else if (limits[index]!.shadow) {
        this.pending.delete(waiter);
        waiter.release(answer.value);
      } else if (answer.value.allowed) {
        this.pending.delete(waiter);
        this.reserved.add(waiter, limits[index]!, answer.value);
        this.likelyUnits = Math.max(answer.value.remaining, unitsAhead(waiter));
        this.pollMs = FIRST_POLL_MS;
      } else {
        waiter.refuse(answer.value);
        if (!waiter.isSettled) refused ??= { waiter, limit: limits[index]!, decision: answer.value };
      }
    }
    if (waiters.some((waiter, index) => waiter.limit() !== limits[index])) this.onLimitChanged();
    return refused;
  }

  private async sleep({ waiter, retryAt }: Refusal): Promise<void> {
    let ms = retryAt - performance.now();
    if (waiter.limit().algorithm.holding !== undefined) {
      ms = Math.min(ms, this.pollMs);
      this.pollMs = Math.min(this.pollMs * 2, LAST_POLL_MS);
    }
    await new Promise<void>((resolve) => {
      const timeout = new LongTimeout(ms, resolve);
      this.endSleep = () => {
        timeout.clear();
        resolve();
      };
    });
    this.endSleep = undefined;
  }

  private refundOf({ limit, units, decision }: ReservedUnits): Refund {
    return refundOf({ limit, identity: this.options.identity, units }, decision);
  }
}

function asDecision(answer: unknown): StoreDecision {
  if (typeof answer === 'object' && answer !== null && 'allowed' in answer) return answer as StoreDecision;
  throw new TypeError(messages.noDecision(answer));
}

/** The units that can be reserved ahead of their time: none where a part of the limit is left to others. */
function unitsAhead(waiter: Waiter): number {
  const limit = waiter.limit();
  return limit.algorithm.reservation === undefined || limit.whole !== limit ? 0 : Infinity;
}

function asOfNow({ decision, retryAt }: Refusal): StoreDecision {
  return { ...decision, retryAfterMs: Math.max(0, Math.ceil(retryAt - performance.now())) };
}
