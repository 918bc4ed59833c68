import { flatCopy } from './flat-copy.js';

/** How many keys are remembered, and then as many again before the first are forgotten. */
const MAX_RECENT = 1000;

/** Remembers what was made of the keys that came last: a client seldom sends one request alone. */
export class RecentMap<V> {
  private recent = new Map<string, V>();
  private before = new Map<string, V>();

  /** What was made of a key; made anew if it is not remembered. Nothing is remembered if nothing is made. */
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
    // A text from a header is cut out of it, and would keep all of it alive.
    this.recent.set(flatCopy(key), value);
    return value;
  }
}
