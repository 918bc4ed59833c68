/** An entry of a `RecencyList`, linked with its neighbours. */
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
 * Records the order in which the entries of one or several maps were used, and bounds their number and their memory. The least recently
 * used entry is evicted first. Protected entries are only evicted if they fill half of the bounds, or no others are left. All calls take
 * constant time.
 */
export class RecencyList<E extends Kept> {
  private plain = new Segment();
  private protected = new Segment();

  constructor(
    private readonly maxKeys: number,
    /** May be changed; the next `put` then evicts entries. */
    public maxBytes: number,
    /** Removes an evicted entry from its map; it has already left the list. */
    private readonly evicted: (entry: E) => void,
  ) {}

  get size(): number {
    return this.plain.count + this.protected.count;
  }

  get bytes(): number {
    return this.plain.bytes + this.protected.bytes;
  }

  /** Adds or moves an entry as the most recently used one, which is never evicted. */
  put(entry: E, bytes: number, isProtected: boolean): void {
    const segment = isProtected ? this.protected : this.plain;
    if (entry.segment === segment && entry.bytes === bytes) return this.touch(entry);
    entry.segment?.remove(entry);
    entry.bytes = bytes;
    segment.push(entry);
    while (this.isFull && this.size > 1) this.evict(entry);
  }

  /** Marks an entry as the most recently used. While the list is less than half full this does nothing, because no eviction is near. */
  touch(entry: E): void {
    const { segment } = entry;
    if (segment === undefined || segment.newest === entry) return;
    if (this.size * 2 <= this.maxKeys && this.bytes * 2 <= this.maxBytes) return;
    segment.remove(entry);
    segment.push(entry);
  }

  /** Removes an entry, and returns true if it was in the list. */
  remove(entry: E): boolean {
    const { segment } = entry;
    segment?.remove(entry);
    return segment !== undefined;
  }

  clear(): void {
    this.plain = new Segment();
    this.protected = new Segment();
  }

  private get isFull(): boolean {
    return this.size > this.maxKeys || this.bytes > this.maxBytes;
  }

  private evict(kept: E): void {
    const { count, bytes } = this.protected;
    const isCrowded = count > this.maxKeys * PROTECTED_SHARE || bytes > this.maxBytes * PROTECTED_SHARE;
    const [first, second] = isCrowded ? [this.protected, this.plain] : [this.plain, this.protected];
    const victim = (first.oldest === undefined || first.oldest === kept ? second.oldest : first.oldest) as E;
    this.remove(victim);
    this.evicted(victim);
  }
}
