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
