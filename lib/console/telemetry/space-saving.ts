import { flatCopy } from '../../engine/util/bounded-maps.js';

/** The number of counters of an instance, for the rejected keys of all its limits. */
const COUNTERS = 20_480;
/** The number of counters that a limit gets with its first rejected key. There is room for 2,200 limits. */
const LEAST = 8;
/** Maximum number of counters of one limit. */
const MOST = 256;
/** Maximum number of keys that take over a counter per second; each takes about 0.3 µs. */
const MOST_TAKEN = 10_000;
/** Beyond that, one out of this many keys takes over a counter and represents all of them. */
const SAMPLED = 32;

/**
 * Divides a number of counters among limits according to their need. A limit starts with few counters and doubles them when its keys need
 * more. When none are left, the limit with the most gives half of them to one that has less than that. In a flood of different keys only
 * some of them are counted, which limits the cost.
 */
export class KeyBudget {
  private readonly sketches = new Set<SpaceSaving>();
  /** Limits that did not get more counters. They request them again in the next period. */
  private readonly denied = new Set<SpaceSaving>();
  private left: number;
  private taken = 0;

  constructor(total = COUNTERS) {
    this.left = total;
  }

  /** Counters for the keys of a limit. */
  open(): SpaceSaving {
    while (this.left < LEAST && this.shrinkLargest(2 * LEAST));
    const size = Math.max(1, Math.min(LEAST, this.left));
    this.left -= size;
    const sketch = new SpaceSaving(size, this.onFull);
    this.sketches.add(sketch);
    return sketch;
  }

  /** Returns the counters of a sketch, which must not be used any more. */
  close(sketch: SpaceSaving): void {
    if (!this.sketches.delete(sketch)) return;
    this.denied.delete(sketch);
    this.left += sketch.size;
  }

  /** Called once a second. */
  turn(): void {
    this.taken = 0;
  }

  private readonly onFull = (sketch: SpaceSaving): number => {
    const { size } = sketch;
    if (size < MOST) this.grow(sketch);
    if (sketch.size > size || ++this.taken <= MOST_TAKEN) return 1;
    return this.taken % SAMPLED === 0 ? SAMPLED : 0;
  };

  private grow(sketch: SpaceSaving): void {
    const { size } = sketch;
    if (this.denied.has(sketch)) return;
    // The giver keeps at least as many as the other one gets.
    const more = Math.min(size, MOST - size);
    if (this.left < more && !this.shrinkLargest(4 * size)) {
      this.denied.add(sketch);
      return;
    }
    this.left -= more;
    sketch.resize(size + more);
  }

  /** Halves the largest sketch. Returns true if it had at least `least` counters. */
  private shrinkLargest(least: number): boolean {
    let largest: SpaceSaving | undefined;
    for (const each of this.sketches) if (each.size > (largest?.size ?? 0)) largest = each;
    if (largest === undefined || largest.size < least) return false;
    const given = largest.size >> 1;
    largest.resize(largest.size - given);
    this.left += given;
    return true;
  }
}

/** A key that may be among the most frequent. */
export interface Frequent {
  readonly key: string;
  /** The upper bound of the key's count. */
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
 * Finds the most frequent keys of a stream in limited memory: Space-Saving, by A. Metwally, D. Agrawal and A. El Abbadi, "Efficient
 * computation of frequent and top-k elements in data streams" (ICDT 2005). Each of `k` counters has a key. A key without a counter takes
 * over the smallest one, `min`: its count becomes `min + weight`, its error `min`.
 *
 * With `N` the sum of all weights and `f` the real weight of a key: `count - error <= f <= count`, `error <= min <= N / k`, the counts of
 * all counters add up to `N`, and each key with `f > N / k` has a counter.
 *
 * The number of counters may change. Then `error <= N / k` is true for the smallest `k` so far, and the sum of the counts may differ from
 * `N`; the bounds of each key are still valid. They aren't if only some of the new keys take over a counter, each with the weight of
 * several keys: counts are estimates then.
 */
export class SpaceSaving {
  private readonly byKey = new Map<string, Counter>();
  /** A binary heap, the smallest count first. */
  private heap: Counter[] = [];
  private missed = 0;

  /**
   * @param capacity the number of keys that are counted at the same time
   * @param onFull called before a key takes over the counter of another one; may increase the capacity. Returns how many keys the new one
   * represents; 0 to leave it out
   */
  constructor(
    private capacity: number,
    private readonly onFull: (full: SpaceSaving) => number = () => 1,
  ) {}

  /** The number of keys that are counted at the same time. */
  get size(): number {
    return this.capacity;
  }

  /** Changes the number of counters. The smallest counts are removed first. */
  resize(capacity: number): void {
    this.capacity = capacity;
    if (this.heap.length <= capacity) return;
    const ascending = this.heap.toSorted((one, other) => one.count - other.count);
    const dropped = ascending.splice(0, ascending.length - capacity);
    for (const { key } of dropped) this.byKey.delete(key);
    this.missed = Math.max(this.missed, dropped.at(-1)!.count);
    // In ascending order it is a valid heap.
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
      // A substring would keep the whole text in memory.
      const kept = flatCopy(key);
      if (heap.length < capacity) {
        counter = { key: kept, count: missed, error: missed, at: heap.length };
        heap.push(counter);
        // A new counter starts as the smallest one.
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

  /** The upper bound of the count of any key without a counter. */
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
  /** The upper bound of the count of any other key. */
  readonly floor: number;
}

/**
 * Merges the summaries of several streams by adding counts and errors. If a stream doesn't list a key, the key may have occurred there up
 * to the stream's floor. The merged bounds are valid for all streams together.
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
