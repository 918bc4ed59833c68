import { SplitMap } from './split-map.js';

/** An entry of a `BoundedMap`, linked with its neighbours in the order of use. */
export class Kept {
  /** @internal */
  segment: Segment | undefined;
  /** @internal */
  older: Kept | undefined;
  /** @internal */
  newer: Kept | undefined;
  /** An estimate of its memory. */
  bytes = 0;

  constructor(readonly key: string) {}
}

/** Entries in the order of use. */
class Segment {
  oldest: Kept | undefined;
  newest: Kept | undefined;
  count = 0;
  bytes = 0;

  push(entry: Kept): void {
    entry.segment = this;
    entry.older = this.newest;
    entry.newer = undefined;
    if (this.newest === undefined) this.oldest = entry;
    else this.newest.newer = entry;
    this.newest = entry;
    this.count++;
    this.bytes += entry.bytes;
  }

  remove(entry: Kept): void {
    const { older, newer } = entry;
    if (older === undefined) this.oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.newest = older;
    else newer.older = older;
    entry.segment = entry.older = entry.newer = undefined;
    this.count--;
    this.bytes -= entry.bytes;
  }
}

/** The share of the bounds that protected entries may fill, so that a flood of them does not evict all others. */
const PROTECTED_SHARE = 0.5;

/**
 * A map with a bounded number of entries and bounded memory: it evicts the least recently used entry first. Protected entries
 * are evicted only if they fill half of it, or no others are left. All calls take constant time.
 */
export class BoundedMap<E extends Kept> {
  private readonly entries = new SplitMap<E>();
  private plain = new Segment();
  private protected = new Segment();

  constructor(
    private readonly maxKeys: number,
    private readonly maxBytes: number,
    /** Is told of each entry that had to go. */
    private readonly onEvicted?: (entry: E) => void,
  ) {}

  get size(): number {
    return this.plain.count + this.protected.count;
  }

  get bytes(): number {
    return this.plain.bytes + this.protected.bytes;
  }

  get(key: string): E | undefined {
    return this.entries.get(key);
  }

  /** Puts an entry, new or not, as the most recently used one, which is never evicted. */
  put(entry: E, bytes: number, isProtected: boolean): void {
    const segment = isProtected ? this.protected : this.plain;
    if (entry.segment === segment && entry.bytes === bytes) return this.touch(entry);
    if (entry.segment === undefined) this.entries.set(entry.key, entry);
    else entry.segment.remove(entry);
    entry.bytes = bytes;
    segment.push(entry);
    while (this.isFull && this.size > 1) this.evict(entry);
  }

  /** Makes an entry the most recently used. Skips that while the map is less than half full: an eviction is far off. */
  touch(entry: E): void {
    const { segment } = entry;
    if (segment === undefined || segment.newest === entry) return;
    if (this.size * 2 <= this.maxKeys && this.bytes * 2 <= this.maxBytes) return;
    segment.remove(entry);
    segment.push(entry);
  }

  delete(entry: E): void {
    if (entry.segment === undefined) return;
    entry.segment.remove(entry);
    this.entries.delete(entry.key);
  }

  clear(): void {
    this.entries.clear();
    this.plain = new Segment();
    this.protected = new Segment();
  }

  /** All entries; entries that are added or deleted meanwhile may be among them. */
  values(): IterableIterator<E> {
    return this.entries.values();
  }

  private get isFull(): boolean {
    return this.size > this.maxKeys || this.bytes > this.maxBytes;
  }

  private evict(kept: E): void {
    const { count, bytes } = this.protected;
    const isCrowded = count > this.maxKeys * PROTECTED_SHARE || bytes > this.maxBytes * PROTECTED_SHARE;
    const [first, second] = isCrowded ? [this.protected, this.plain] : [this.plain, this.protected];
    const victim = first.oldest === undefined || first.oldest === kept ? second.oldest : first.oldest;
    this.delete(victim as E);
    this.onEvicted?.(victim as E);
  }
}
