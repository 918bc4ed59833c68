import { setImmediate as turn } from 'node:timers/promises';
import { MAX_INTERVAL_MS } from '../algorithms/options.js';
import { messages } from '../errors/messages/general.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import { chargeOf, openDecision } from '../stores/store-decision.js';
import type { ListVerdicts } from '../stores/layers/list.store.js';
import type { Refund, Store, StoreDecision } from '../stores/store.js';
import { LongTimeout } from '../util/long-timeout.js';
import { MAX_BATCH, PendingWaiters } from './pending-waiters.js';
import { unitsAhead } from './places-ahead.js';
import { ReservedQueue } from './reserved-queue.js';
import type { ReservedUnits } from './reserved-units.js';
import type { Waiter } from './waiter.js';
import type { WaitingCount } from './waiting-count.js';

/** The times between polls for held units, which may be released at any time, also by another process: each is twice the last. */
const FIRST_POLL_MS = 25;
const LAST_POLL_MS = 1000;
/** A store in process answers in the same turn of the event loop: so many calls are made in one. */
const CALLS_A_TURN = 20;

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
  readonly count: WaitingCount;
}

/** How far away units may be that a waiter asks for. */
interface LongestWait {
  readonly ms: number;
  /** Whether it would wait for longer. */
  readonly isEarly: boolean;
}

/** What was refused, of the first waiter that was. */
interface Refused extends Omit<Refusal, 'retryAt'> {
  /** Whether it may not be asked for further ahead yet, rather than having no place. */
  readonly isEarly: boolean;
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
  /** The units that the next call is likely to get at once. */
  private likelyUnits = 0;
  /** Whether nothing may be reserved, since units are taken off the end of the store's queue. */
  private isSuspended = false;
  private readonly limit: () => CompiledLimit;

  constructor(
    first: Waiter,
    private readonly options: WaitQueueOptions,
  ) {
    this.reserved = new ReservedQueue(
      (reserved) => options.refund(reserved.map((units) => this.chargeOf(units))),
      () => this.endIfEmpty(),
      () => this.endSleepIfRoom(),
    );
    this.limit = first.limit;
  }

  join(waiter: Waiter): void {
    const { count } = this.options;
    // Who comes while the line sleeps has to wait, behind all who wait already.
    if (this.endSleep !== undefined && !this.retryNow && this.size >= count.most) {
      waiter.reject(count.refusal(waiter.limit().name));
      return;
    }
    this.add(waiter);
    // A former refusal may be out of date: it causes a retry, and rejects no one.
    if (this.inFlight === undefined && this.mayBeLate(waiter)) this.wake();
    if (!this.running) void this.run();
  }

  private add(waiter: Waiter): void {
    this.pending.add(waiter);
    waiter.onRejected = () => {
      this.pending.delete(waiter);
      // The waiters behind it may fit now.
      if (this.refusal?.waiter === waiter) this.wake();
    };
  }

  /** Those of this line that wait. */
  private get size(): number {
    return this.pending.size + this.reserved.size;
  }

  /** Whether one that comes now is likely to time out. */
  private mayBeLate(waiter: Waiter): boolean {
    if (this.refusal !== undefined) return waiter.timesOutBy(asOfNow(this.refusal));
    return waiter.deadline < Infinity && this.room === 0 && this.pending.mayTimeOut(this.aheadMs);
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
      this.options.refund([{ ...this.chargeOf(converted), units: 0 }]);
    }
    this.wake();
  }

  /** Asks anew if a list decides from now on: it lets all of them go, or refuses them. */
  onListsChanged(lists: ListVerdicts): void {
    if (lists.verdict(this.limit(), this.options.identity, undefined) !== undefined) this.refundReserved();
  }

  /** Refunds all reserved units: nobody waits for units of the future any more. */
  private refundReserved(): void {
    const reserved = this.takeBackReserved();
    if (reserved.length > 0) this.options.refund(reserved);
    this.goOn();
  }

  /** Forgets all reserved units, and reserves them anew. */
  restart(): void {
    this.takeBackReserved();
    this.goOn();
  }

  /** Reserves nothing until `resume`. Returns the refunds of what is reserved. */
  suspend(): Refund[] {
    this.isSuspended = true;
    return this.takeBackReserved();
  }

  resume(): void {
    this.isSuspended = false;
    this.goOn();
  }

  /** Puts the waiters with reserved units before those without. Returns the refunds of these units. */
  private takeBackReserved(): Refund[] {
    const { waiters, reserved } = this.reserved.drain();
    const behind = waiters.length === 0 ? [] : this.pending.drain();
    for (const waiter of [...waiters, ...behind]) if (!waiter.isSettled) this.add(waiter);
    return reserved.map((units) => this.chargeOf(units));
  }

  private goOn(): void {
    if (this.pending.size > 0) this.wake();
    if (this.pending.size > 0 && !this.running) void this.run();
    this.endIfEmpty();
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
    let calls = 0;
    for (;;) {
      // Waiters that come in one turn share a call.
      await Promise.resolve();
      if (this.pending.size === 0) break;
      const ms = this.idleMs();
      if (ms > 0) {
        const { count } = this.options;
        this.pending.rejectBehind(count.most - this.reserved.size, (waiter) => count.refusal(waiter.limit().name));
        if (this.pending.size > 0) await this.sleep(ms);
        continue;
      }
      // Thousands who wait leave the event loop to others now and then.
      if (++calls % CALLS_A_TURN === 0) await turn();
      await (this.inFlight = this.reserveNext());
      this.inFlight = undefined;
    }
    this.running = false;
    this.endIfEmpty();
  }

  /** How long it is of no use to ask, in milliseconds: `Infinity` until it is woken. */
  private idleMs(): number {
    if (this.isSuspended) return Infinity;
    if (this.retryNow) return 0;
    const { refusal } = this;
    if (refusal === undefined) return this.room === 0 ? Infinity : 0;
    const ms = refusal.retryAt - performance.now();
    if (ms <= 0 || refusal.waiter.limit().algorithm.holding === undefined) return ms;
    const { pollMs } = this;
    this.pollMs = Math.min(pollMs * 2, LAST_POLL_MS);
    return Math.min(ms, pollMs);
  }

  /** How many units may be reserved ahead of their time now: none until half of those that were are used. Nothing if no bound is needed. */
  private get room(): number | undefined {
    const ahead = unitsAhead((this.pending.first?.limit ?? this.limit)());
    if (ahead === undefined) return undefined;
    const { units } = this.reserved;
    return units > ahead / 2 ? 0 : ahead - units;
  }

  /** How far away the last reserved units are, in milliseconds. */
  private get aheadMs(): number {
    return Math.max(0, this.reserved.lastUsableAt - performance.now());
  }

  private endSleepIfRoom(): void {
    if (this.endSleep !== undefined && this.refusal === undefined && this.room !== 0) this.endSleep();
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
    const { room } = this;
    const { nextNumber } = this.pending;
    const refused = await this.reserve(this.pending.batch(Math.max(this.likelyUnits, room ?? 0)), room);
    if (refused === undefined) {
      // The store says how long the line is, if that is too long for some.
      if (this.room === 0 && this.pending.mayTimeOut(this.aheadMs)) this.retryNow = true;
      return;
    }
    this.likelyUnits = 0;
    const { waiter: first, decision, isEarly } = refused;
    if (!isEarly && !first.isSettled) {
      this.refusal = { ...refused, retryAt: performance.now() + decision.retryAfterMs };
    }
    const impatient: Waiter[] = [];
    for (const { waiter, number, waitMs } of this.pending.timedOutBy(decision, first, isEarly)) {
      // The refusal may be older than a waiter that came meanwhile.
      if (number >= nextNumber) this.retryNow = true;
      else if (waiter.cost < first.cost && !isEarly) impatient.push(waiter);
      else waiter.refuse({ ...decision, retryAfterMs: Math.max(decision.retryAfterMs, Math.ceil(waitMs)) }, waitMs);
    }
    for (let index = 0; index < impatient.length; index += MAX_BATCH) {
      await this.reserve(impatient.slice(index, index + MAX_BATCH), this.room);
    }
  }

  /** Reserves units for several waiters in one turn, so many of them ahead of their time. Returns the first refusal that matters to others. */
  private async reserve(waiters: readonly Waiter[], room: number | undefined): Promise<Refused | undefined> {
    const { identity, store } = this.options;
    const limits = waiters.map((waiter) => waiter.limit());
    const waits = this.longestWaits(waiters, room);
    const answers = await Promise.allSettled(
      // A store of the user's own may also throw, or give no decision: then that call fails, and not the process.
      waiters.map(async ({ cost, priority }, index) => {
        const limit = limits[index]!;
        if (limit.off) return openDecision(limit);
        const answer: unknown = await store.reserve({ limit, identity, cost, priority, maxWaitMs: waits[index]!.ms });
        return asDecision(answer);
      }),
    );
    let refused: Refused | undefined;
    for (const [index, answer] of answers.entries()) {
      const waiter = waiters[index]!;
      if (answer.status === 'rejected') waiter.reject(answer.reason);
      else if (limits[index]!.shadow) {
        this.pending.delete(waiter);
        waiter.release(answer.value);
      } else if (answer.value.allowed) {
        this.pending.delete(waiter);
        this.reserved.add(waiter, limits[index]!, answer.value);
        // What remains of a queue are places in it.
        this.likelyUnits = limits[index]!.algorithm.queue === undefined ? answer.value.remaining : 0;
        this.pollMs = FIRST_POLL_MS;
      } else {
        const decision = answer.value;
        const { isEarly } = waits[index]!;
        if (isEarly) waiter.refuse(decision, decision.retryAfterMs);
        else waiter.refuse(decision);
        const tellsOfLine = room !== undefined && decision.retryAfterMs < Infinity;
        if (waiter.isSettled && !tellsOfLine) continue;
        refused ??= { waiter, limit: limits[index]!, decision, isEarly };
      }
    }
    if (waiters.some((waiter, index) => waiter.limit() !== limits[index])) this.onLimitChanged();
    return refused;
  }

  /** The longest that units of waiters may be away that are asked for in one turn: beyond the room only those are taken that can be used now. */
  private longestWaits(waiters: readonly Waiter[], room: number | undefined): LongestWait[] {
    let units = 0;
    return waiters.map(({ leftMs, cost }, index) => {
      units += cost;
      const longest = Math.min(leftMs, MAX_INTERVAL_MS);
      if (room === undefined || units <= room || (index === 0 && room > 0)) return { ms: longest, isEarly: false };
      // Units that came back may be there before those that were reserved.
      const ms = index === 0 ? Math.max(0, this.aheadMs - 1) : 0;
      return { ms: Math.min(longest, ms), isEarly: ms < longest };
    });
  }

  private async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timeout = new LongTimeout(ms, () => {
        this.retryNow = true;
        resolve();
      });
      this.endSleep = () => {
        timeout.clear();
        resolve();
      };
    });
    this.endSleep = undefined;
  }

  private chargeOf({ limit, units, decision }: ReservedUnits): Refund {
    return chargeOf({ limit, identity: this.options.identity, cost: units }, decision);
  }
}

function asDecision(answer: unknown): StoreDecision {
  if (typeof answer === 'object' && answer !== null && 'allowed' in answer) return answer as StoreDecision;
  throw new TypeError(messages.noDecision(answer));
}

function asOfNow({ decision, retryAt }: Refusal): StoreDecision {
  return { ...decision, retryAfterMs: Math.max(0, Math.ceil(retryAt - performance.now())) };
}
