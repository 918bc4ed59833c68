import { flatCopy } from '../../engine/util/flat-copy.js';

/** A key that may be among the most frequent. */
export interface Frequent {
  readonly key: string;
  /** The upper bound of how often the key came. */
  readonly count: number;
  /** The lower bound is `count - error`. */
  readonly error: number;
}

/** A counter, with its index in the heap. */
interface Counter {
  key: string;
  count: number;
  error: number;
  at: number;
}

/**
 * Finds the most frequent keys of a stream in bounded memory: Space-Saving, of A. Metwally, D. Agrawal and A. El Abbadi, "Efficient
 * computation of frequent and top-k elements in data streams" (ICDT 2005). Of `k` counters each holds a key; one that comes without a counter
 * takes over the smallest one, `min`: its count becomes `min + weight`, its error `min`.
 *
 * With `N` the sum of all weights and `f` what a key really weighed: `count - error <= f <= count`, `error <= min <= N / k`, the counts of
 * all counters sum up to `N`, and each key with `f > N / k` has a counter.
 *
 * The number of counters may change on the way. Then `error <= N / k` holds for the smallest `k` there was, and the sum of the counts may
 * differ from `N`; the bounds of each key hold. They do not where only some of the new keys take over a counter, each with the weight of
 * several: then counts are estimates.
 */
export class SpaceSaving {
  private readonly byKey = new Map<string, Counter>();
  /** A binary heap, the smallest count first. */
  private heap: Counter[] = [];
  private missed = 0;

  /**
   * @param capacity the number of keys that are counted at the same time
   * @param onFull is called before a key takes over the counter of another one, and may enlarge the capacity. It returns how many
   * keys the new one stands for; none if it is left out.
   */
  constructor(
    private capacity: number,
    private readonly onFull: (full: SpaceSaving) => number = () => 1,
  ) {}

  /** The number of keys that are counted at the same time. */
  get size(): number {
    return this.capacity;
  }

  /** Changes the number of counters; the smallest counts go first. */
  resize(capacity: number): void {
    this.capacity = capacity;
    if (this.heap.length <= capacity) return;
    const ascending = this.heap.toSorted((one, other) => one.count - other.count);
    const dropped = ascending.splice(0, ascending.length - capacity);
    for (const { key } of dropped) this.byKey.delete(key);
    this.missed = Math.max(this.missed, dropped.at(-1)!.count);
    // In ascending order it is a heap.
    for (const [at, counter] of ascending.entries()) counter.at = at;
    this.heap = ascending;
  }

  add(key: string, weight = 1): void {
    let added = weight;
    const { byKey } = this;
    let counter = byKey.get(key);
    if (counter === undefined) {
      if (this.heap.length >= this.capacity) {
        const times = this.onFull(this);
        if (times === 0) return;
        added *= times;
      }
      const { heap, capacity, missed } = this;
      // A substring would keep the whole text alive.
      const kept = flatCopy(key);
      if (heap.length < capacity) {
        counter = { key: kept, count: missed, error: missed, at: heap.length };
        heap.push(counter);
        // It starts as the smallest one.
        this.rise(counter);
      } else {
        counter = heap[0]!;
        byKey.delete(counter.key);
        counter.key = kept;
        counter.error = counter.count + added - weight;
        this.missed = counter.count;
      }
      byKey.set(kept, counter);
    }
    counter.count += added;
    this.sink(counter);
  }

  /** All keys with a counter, the most frequent first. */
  frequent(): Frequent[] {
    return this.heap
      .map(({ key, count, error }) => ({ key, count, error }))
      .toSorted((one, other) => other.count - one.count);
  }

  /** The upper bound of how often any key without a counter came. */
  get floor(): number {
    return this.missed;
  }

  private rise(counter: Counter): void {
    const { heap } = this;
    while (counter.at > 0) {
      const parent = heap[(counter.at - 1) >> 1]!;
      if (parent.count <= counter.count) return;
      this.swap(counter, parent);
    }
  }

  private sink(counter: Counter): void {
    const { heap } = this;
    for (;;) {
      const left = heap[2 * counter.at + 1];
      const right = heap[2 * counter.at + 2];
      const child = right !== undefined && right.count < left!.count ? right : left;
      if (child === undefined || child.count >= counter.count) return;
      this.swap(counter, child);
    }
  }

  private swap(one: Counter, other: Counter): void {
    const { heap } = this;
    const { at } = one;
    heap[(one.at = other.at)] = one;
    heap[(other.at = at)] = other;
  }
}

/** The keys of one of several streams. */
export interface Summary {
  readonly frequent: readonly Frequent[];
  /** The upper bound of how often any other key came. */
  readonly floor: number;
}

/**
 * Merges the summaries of several streams: counts and errors add up. If a stream does not list a key, the key may have come there
 * as often as its floor. The bounds of each stream then hold for all of them together.
 */
export function mergeFrequent(summaries: readonly Summary[], most: number): Frequent[] {
  const floors = summaries.reduce((sum, { floor }) => sum + floor, 0);
  const merged = new Map<string, { count: number; error: number }>();
  for (const { frequent, floor } of summaries) {
    for (const { key, count, error } of frequent) {
      const sum = merged.get(key) ?? { count: floors, error: floors };
      merged.set(key, { count: sum.count + count - floor, error: sum.error + error - floor });
    }
  }
  return [...merged]
    .map(([key, sum]) => ({ key, ...sum }))
    .toSorted((one, other) => other.count - one.count)
    .slice(0, most);
}
