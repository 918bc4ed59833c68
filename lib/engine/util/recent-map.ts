import { flatCopy } from './flat-copy.js';

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
