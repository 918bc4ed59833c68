import { Heap } from './heap.js';

interface Expiry<T> {
  readonly at: number;
  readonly value: T;
}

/** The maximum number of outdated times of replaced values. */
const MOST_STALE = 1000;

/** Values ordered by the time at which they expire. */
export class ExpiryQueue<T> {
  private readonly heap = new Heap<Expiry<T>>((one, other) => one.at < other.at);

  /** The earliest time; `Infinity` if nothing expires. */
  get next(): number {
    return this.heap.first?.at ?? Infinity;
  }

  get size(): number {
    return this.heap.size;
  }

  add(at: number, value: T): void {
    this.heap.add({ at, value });
  }

  /** Removes and returns all values that have expired at `now`, the earliest first. */
  takeExpired(now: number): T[] {
    const expired: T[] = [];
    while (this.next <= now) expired.push(this.heap.take()!.value);
    return expired;
  }

  /** Removes the times of replaced values once there are too many. `expiries` lists the current ones, `values` is their number. */
  dropStale(values: number, expiries: () => Iterable<readonly [at: number, value: T]>): void {
    if (this.size <= 2 * values + MOST_STALE) return;
    this.clear();
    for (const [at, value] of expiries()) this.add(at, value);
  }

  clear(): void {
    this.heap.clear();
  }
}
