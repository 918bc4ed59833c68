import { Kept, RecencyList } from './recency-list.js';
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

/** The maximum number of characters for which this copy is fast. */
const MOST_CHARACTERS = 128;

const characters = Buffer.alloc(2 * MOST_CHARACTERS);

/**
 * Copies a string so that it doesn't keep anything else in memory. A substring keeps the whole string alive: an address from a header keeps
 * the entire header, whose length the client determines.
 */
export function flatCopy(text: string): string {
  if (text.length > MOST_CHARACTERS) return Buffer.from(text, 'utf16le').toString('utf16le');
  const copy = characters.toString('latin1', 0, characters.write(text, 'latin1'));
  return copy === text ? copy : characters.toString('utf16le', 0, characters.write(text, 'utf16le'));
}

/** The number of keys to keep. Up to twice as many are stored before the oldest are dropped. */
const MAX_RECENT = 1000;

/** Caches computed values for the latest keys, since clients rarely send just one request. */
export class RecentMap<V> {
  private recent = new Map<string, V>();
  private before = new Map<string, V>();

  /** The value of a recently used key. */
  get(key: string): V | undefined {
    return this.recent.get(key);
  }

  /** Returns the cached value of a key, or computes it. `undefined` isn't cached. */
  of(key: string, make: (key: string) => V | undefined): V | undefined {
    return this.recent.get(key) ?? this.remember(key, make);
  }

  private remember(key: string, make: (key: string) => V | undefined): V | undefined {
    const value = this.before.get(key) ?? make(key);
    if (value === undefined) return undefined;
    if (this.recent.size === MAX_RECENT) {
      this.before = this.recent;
      this.recent = new Map();
    }
    // A substring of a header would keep the entire header in memory.
    this.recent.set(flatCopy(key), value);
    return value;
  }
}

const MAX_VALUES = 1000;
const MAX_BYTES = 10_000_000;
const CHARACTER_BYTES = 2;
/** The maximum nesting of a limit's definition. */
const MAX_DEPTH = 5;

class Known<V> extends Kept {
  constructor(
    key: string,
    readonly value: V,
  ) {
    super(key);
  }
}

/** Caches values by equal objects, and evicts the least recently used. Functions in these objects are compared by reference. */
export class ValueCache<V> {
  private readonly known = new BoundedMap<Known<V>>(MAX_VALUES, MAX_BYTES);
  private readonly serials = new WeakMap<object, number>();
  private lastSerial = 0;

  /** Returns the value of an equal object, or creates a new one. */
  of(asked: unknown, make: () => V): V {
    // Joined, since a text that is only concatenated stays a tree of its parts.
    const key = [this.textOf(asked, 0), ''].join('.');
    const known = this.known.get(key);
    if (known !== undefined) {
      this.known.touch(known);
      return known.value;
    }
    const value = make();
    this.known.put(new Known(key, value), CHARACTER_BYTES * key.length, false);
    return value;
  }

  /**
   * A text that identifies a value. Each text in it is preceded by its length, so that adjacent texts can't be confused. This is one function
   * because V8 inlines functions that call each other, which took longer than reading 3,000 limits.
   */
  private textOf(value: unknown, depth: number): string {
    if (typeof value === 'string') return `'${value.length}:${value}`;
    // Most values are numbers, and options that are not set.
    if (value === undefined) return 'u';
    if (typeof value === 'number') return `n${value}`;
    if (typeof value === 'function') return this.serialOf(value);
    if (typeof value !== 'object' || value === null) {
      return [typeof value, value].map(String).join(' ');
    }
    if (depth === MAX_DEPTH || !isPlain(value)) return this.serialOf(value);
    let text = '';
    if (Array.isArray(value)) {
      for (const part of value) text += `${this.textOf(part, depth + 1)},`;
      return `[${text}]`;
    }
    const parts = value as Record<string, unknown>;
    for (const name of Object.getOwnPropertyNames(parts).sort()) {
      text += `${name.length}:${name}=${this.textOf(parts[name], depth + 1)},`;
    }
    return `{${text}}`;
  }

  private serialOf(value: object): string {
    let serial = this.serials.get(value);
    if (serial === undefined) this.serials.set(value, (serial = ++this.lastSerial));
    return `#${serial}`;
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Array.isArray(value);
}
