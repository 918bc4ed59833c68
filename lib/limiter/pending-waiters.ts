import type { StoreDecision } from '../stores/store.js';
import { leastGapMs, unitsAhead } from './places-ahead.js';
import { leastWaitMs, type Waiter } from './waiter.js';

/** The most waiters of one call. */
export const MAX_BATCH = 500;

/** A waiter whose time is over before it can have its units. */
export interface LateWaiter {
  readonly waiter: Waiter;
  /** Its number: they are counted as they come. */
  readonly number: number;
  /** The least wait until then, in milliseconds. */
  readonly waitMs: number;
}

/** Waiters without reserved units, in the order in which they came. */
export class PendingWaiters {
  /** With the number of each: they are counted as they come. */
  private readonly numbers = new Map<Waiter, number>();
  private count = 0;
  /** The units of all of them. */
  private units = 0;
  /** No waiter has an earlier deadline, or a higher cost. */
  private earliestDeadline = Infinity;
  private highestCost = 1;

  get size(): number {
    return this.numbers.size;
  }

  /** The number that the next waiter gets. */
  get nextNumber(): number {
    return this.count;
  }

  /** The first of them. */
  get first(): Waiter | undefined {
    return this.numbers.keys().next().value;
  }

  add(waiter: Waiter): void {
    this.numbers.set(waiter, this.count++);
    this.units += waiter.cost;
    this.earliestDeadline = Math.min(this.earliestDeadline, waiter.deadline);
    this.highestCost = Math.max(this.highestCost, waiter.cost);
  }

  delete(waiter: Waiter): void {
    if (this.numbers.delete(waiter)) this.units -= waiter.cost;
  }

  /** Takes out all of them. */
  drain(): Waiter[] {
    const waiters = [...this.numbers.keys()];
    this.numbers.clear();
    this.units = 0;
    return waiters;
  }

  rejectAll(reason: Error): void {
    for (const waiter of this.numbers.keys()) waiter.reject(reason);
  }

  /** Rejects those that came last, so that no more are left than `most`. */
  rejectBehind(most: number, reason: (waiter: Waiter) => Error): void {
    if (this.numbers.size <= most) return;
    for (const waiter of [...this.numbers.keys()].slice(Math.max(0, most))) waiter.reject(reason(waiter));
  }

  /** The first of them, as many as fit in `units`, but at least one. */
  batch(units: number): Waiter[] {
    const batch: Waiter[] = [];
    let left = units;
    for (const waiter of this.numbers.keys()) {
      left -= waiter.cost;
      if (batch.length > 0 && (left < 0 || batch.length === MAX_BATCH)) break;
      batch.push(waiter);
    }
    return batch;
  }

  /** Whether some may time out before their turn, in a line that begins `fromMs` from now. */
  mayTimeOut(fromMs: number): boolean {
    const { first } = this;
    if (first === undefined || this.earliestDeadline === Infinity) return false;
    const longest = Math.max(0, fromMs) + leastGapMs(first.limit(), this.units);
    return this.earliestDeadline - performance.now() < longest;
  }

  /**
   * Waiters that time out by a refusal of one of them, which may have asked for units that are there soon. Looks at all of them only if there
   * may be some.
   */
  timedOutBy(refusal: StoreDecision, refused: Waiter, isEarly = false): LateWaiter[] {
    const now = performance.now();
    const limit = refused.limit();
    const isLine = unitsAhead(limit) !== undefined;
    const ownMs = isEarly ? refusal.retryAfterMs : leastWaitMs(limit, refusal, refused.cost);
    const longestMs = isLine ? ownMs + leastGapMs(limit, this.units) : leastWaitMs(limit, refusal, this.highestCost);
    if (longestMs < Infinity && this.earliestDeadline > now && this.earliestDeadline - now >= longestMs) return [];
    this.earliestDeadline = Infinity;
    this.highestCost = 1;
    const late: LateWaiter[] = [];
    // What the refused one asked for is in its own wait.
    let before = -refused.cost;
    for (const [waiter, number] of this.numbers) {
      this.earliestDeadline = Math.min(this.earliestDeadline, waiter.deadline);
      this.highestCost = Math.max(this.highestCost, waiter.cost);
      before += waiter.cost;
      const lineMs = isLine ? ownMs + leastGapMs(limit, before) : 0;
      const waitMs = isEarly ? lineMs : Math.max(lineMs, leastWaitMs(waiter.limit(), refusal, waiter.cost));
      if (!waiter.isTooLate(waitMs)) continue;
      late.push({ waiter, number, waitMs });
      // It leaves, and those behind it move up.
      before -= waiter.cost;
    }
    return late;
  }
}
