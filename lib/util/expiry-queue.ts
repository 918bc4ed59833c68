interface Expiry<T> {
  readonly at: number;
  readonly value: T;
}

/** Values in the order of the times at which they expire: a binary heap. */
export class ExpiryQueue<T> {
  private readonly heap: Expiry<T>[] = [];

  /** The earliest time; `Infinity` if nothing expires. */
  get next(): number {
    return this.heap[0]?.at ?? Infinity;
  }

  get size(): number {
    return this.heap.length;
  }

  add(at: number, value: T): void {
    const { heap } = this;
    let index = heap.push({ at, value }) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (heap[parent]!.at <= heap[index]!.at) return;
      this.swap(index, parent);
      index = parent;
    }
  }

  /** Takes out all that has expired at `now`, the earliest first. */
  takeExpired(now: number): T[] {
    const expired: T[] = [];
    while (this.next <= now) expired.push(this.take());
    return expired;
  }

  clear(): void {
    this.heap.length = 0;
  }

  private take(): T {
    const { heap } = this;
    const [{ value }] = heap as [Expiry<T>];
    const last = heap.pop()!;
    if (heap.length === 0) return value;
    heap[0] = last;
    for (let index = 0; ;) {
      const [left, right] = [2 * index + 1, 2 * index + 2];
      let least = index;
      if (left < heap.length && heap[left]!.at < heap[least]!.at) least = left;
      if (right < heap.length && heap[right]!.at < heap[least]!.at) least = right;
      if (least === index) return value;
      this.swap(index, least);
      index = least;
    }
  }

  private swap(one: number, other: number): void {
    const { heap } = this;
    [heap[one], heap[other]] = [heap[other]!, heap[one]!];
  }
}
