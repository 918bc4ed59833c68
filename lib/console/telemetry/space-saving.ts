import { flatCopy } from '../../engine/util/flat-copy.js';

/** The counters of an instance, for the refused keys of all its limits. */
const COUNTERS = 20_480;
/** What a limit gets with its first refused key; 2,200 limits have room for that. */
const LEAST = 8;
/** The most counters of one limit. */
const MOST = 256;
/** How many keys may take over a counter in a second; each takes about 0.3 µs. */
const MOST_TAKEN = 10_000;
/** Beyond that, one of this many keys does so, and stands for all of them. */
const SAMPLED = 32;

/**
 * Divides a number of counters between limits by need. A limit starts with few of them and doubles them when its keys need more.
 * When none are left, the limit with the most gives half of them to one that has less than that. In a flood of different keys only
 * some of them are counted, so that the cost is bounded.
 */
export class KeyBudget {
  private readonly sketches = new Set<SpaceSaving>();
  /** Those that got no more: they ask again in the next period. */
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

  /** Takes the counters back; the sketch must not count any more. */
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
    // Whoever gives keeps at least as many as the other one gets.
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
