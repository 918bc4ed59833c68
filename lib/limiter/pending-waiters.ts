import type { StoreDecision } from '../stores/store.js';
import { leastWaitMs, type Waiter } from './waiter.js';

/** The most waiters of one call. */
export const MAX_BATCH = 500;

/** Waiters without reserved units, in the order in which they came. */
export class PendingWaiters {
  /** With the number of each: they are counted as they come. */
  private readonly numbers = new Map<Waiter, number>();
  private count = 0;
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

  add(waiter: Waiter): void {
    this.numbers.set(waiter, this.count++);
    this.earliestDeadline = Math.min(this.earliestDeadline, waiter.deadline);
    this.highestCost = Math.max(this.highestCost, waiter.cost);
  }

  delete(waiter: Waiter): void {
    this.numbers.delete(waiter);
  }

  /** Takes out all of them. */
  drain(): Waiter[] {
    const waiters = [...this.numbers.keys()];
    this.numbers.clear();
    return waiters;
  }

  rejectAll(reason: Error): void {
    for (const waiter of this.numbers.keys()) waiter.reject(reason);
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

  /** Waiters that time out by a refusal of the first one, with their numbers. Looks at all of them only if there may be some. */
  timedOutBy(refusal: StoreDecision, { limit }: Waiter): [Waiter, number][] {
    const now = performance.now();
    const waitMs = leastWaitMs(limit(), refusal, this.highestCost);
    if (waitMs < Infinity && this.earliestDeadline > now && this.earliestDeadline - now >= waitMs) return [];
    const all = [...this.numbers];
    this.earliestDeadline = all.reduce((earliest, [{ deadline }]) => Math.min(earliest, deadline), Infinity);
    this.highestCost = all.reduce((highest, [{ cost }]) => Math.max(highest, cost), 1);
    return all.filter(([waiter]) => waiter.timesOutBy(refusal));
  }
}
