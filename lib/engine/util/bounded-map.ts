import { type Kept, RecencyList } from './recency-list.js';
import { SplitMap } from './split-map.js';

export { Kept } from './recency-list.js';

/** A map with a bounded number of entries and bounded memory. A `RecencyList` selects the entries to evict. */
export class BoundedMap<E extends Kept> {
  private readonly entries = new SplitMap<E>();
  private readonly order: RecencyList<E>;

  /** `onEvicted` is called with each evicted entry. */
  constructor(maxKeys: number, maxBytes: number, onEvicted?: (entry: E) => void) {
    this.order = new RecencyList(maxKeys, maxBytes, (entry) => {
      this.entries.delete(entry.key);
      onEvicted?.(entry);
    });
  }

  get size(): number {
    return this.order.size;
  }

  get bytes(): number {
    return this.order.bytes;
  }

  get(key: string): E | undefined {
    return this.entries.get(key);
  }

  /** Adds or moves an entry as the most recently used one, which is never evicted. */
  put(entry: E, bytes: number, isProtected: boolean): void {
    if (entry.segment === undefined) this.entries.set(entry.key, entry);
    this.order.put(entry, bytes, isProtected);
  }

  /** Marks an entry as the most recently used. */
  touch(entry: E): void {
    this.order.touch(entry);
  }

  delete(entry: E): void {
    if (this.order.remove(entry)) this.entries.delete(entry.key);
  }

  clear(): void {
    this.entries.clear();
    this.order.clear();
  }

  /** All entries. Entries that are added or deleted during the iteration may be included. */
  values(): IterableIterator<E> {
    return this.entries.values();
  }
}
