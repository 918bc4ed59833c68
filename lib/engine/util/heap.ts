/** A binary heap: provides the first value of an order. */
export class Heap<T> {
  private readonly values: T[] = [];

  /** `precedes` returns whether one value comes before another. */
  constructor(private readonly precedes: (one: T, other: T) => boolean) {}

  get size(): number {
    return this.values.length;
  }

  get first(): T | undefined {
    return this.values[0];
  }

  add(value: T): void {
    const { values } = this;
    let at = values.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.precedes(value, values[parent]!)) break;
      values[at] = values[parent]!;
      at = parent;
    }
    values[at] = value;
  }

  /** Removes and returns the first value. */
  take(): T | undefined {
    const { values } = this;
    const first = values[0];
    const last = values.pop();
    if (last === undefined || values.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= values.length) break;
      if (child + 1 < values.length && this.precedes(values[child + 1]!, values[child]!)) child++;
      if (!this.precedes(values[child]!, last)) break;
      values[at] = values[child]!;
      at = child;
    }
    values[at] = last;
    return first;
  }

  clear(): void {
    this.values.length = 0;
  }
}

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
