import { flatCopy } from './flat-copy.js';

/** The keys that are remembered; up to twice as many before the oldest are forgotten. */
const MAX_RECENT = 1000;

/** Remembers what was computed for the latest keys: a client seldom sends just one request. */
export class RecentMap<V> {
  private recent = new Map<string, V>();
  private before = new Map<string, V>();

  /** The value of a key that was asked for lately. */
  get(key: string): V | undefined {
    return this.recent.get(key);
  }

  /** Returns the value of a key, and computes it if it is not remembered. `undefined` is not remembered. */
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
    // A string cut out of a header would keep the whole header alive.
    this.recent.set(flatCopy(key), value);
    return value;
  }
}
