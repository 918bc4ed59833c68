import { prefixOf } from './override-address.js';

/** Values by key. A key with a trailing star matches all keys with that prefix. */
export class KeyTable<T> {
  private readonly exact = new Map<string, T>();
  private readonly prefixes = new Map<string, T>();
  /** The number of prefixes of each length. */
  private readonly ofLength = new Map<number, number>();
  /** The lengths of prefixes, the longest first. */
  private lengths: number[] = [];
  private sorted: string[] | undefined;

  get size(): number {
    return this.exact.size + this.prefixes.size;
  }

  get(key: string): T | undefined {
    const prefix = prefixOf(key);
    return prefix === undefined ? this.exact.get(key) : this.prefixes.get(prefix);
  }

  set(key: string, value: T): void {
    const prefix = prefixOf(key);
    const { size } = this;
    if (prefix === undefined) this.exact.set(key, value);
    else this.prefixes.set(prefix, value);
    if (this.size === size) return;
    this.sorted = undefined;
    if (prefix !== undefined) this.count(prefix, 1);
  }

  delete(key: string): void {
    const prefix = prefixOf(key);
    this.sorted = undefined;
    if (prefix === undefined) this.exact.delete(key);
    else if (this.prefixes.delete(prefix)) this.count(prefix, -1);
  }

  /** The most specific value for a key. */
  find(identity: string): T | undefined {
    const exact = this.exact.get(identity);
    if (exact !== undefined || this.lengths.length === 0) return exact;
    for (const length of this.lengths) {
      const value = this.ofPrefix(identity, length);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** All values that apply to a key, the most specific first. */
  *all(key: string): Iterable<T> {
    const prefix = prefixOf(key);
    const exact = prefix === undefined ? this.exact.get(key) : undefined;
    if (exact !== undefined) yield exact;
    const identity = prefix ?? key;
    for (const length of this.lengths) {
      const value = this.ofPrefix(identity, length);
      if (value !== undefined) yield value;
    }
  }

  values(): T[] {
    return [...this.exact.values(), ...this.prefixes.values()];
  }

  /** The next keys after a key, in order. */
  keysAfter(cursor: string | undefined, count: number): string[] {
    const keys = (this.sorted ??= [
      ...this.exact.keys(),
      ...[...this.prefixes.keys()].map((each) => `${each}*`),
    ].sort());
    const start = cursor === undefined ? 0 : firstAfter(keys, cursor);
    return keys.slice(start, start + count);
  }

  /** The value for the key's prefix of this length, if any. */
  private ofPrefix(identity: string, length: number): T | undefined {
    return length > identity.length ? undefined : this.prefixes.get(identity.slice(0, length));
  }

  private count({ length }: string, more: number): void {
    const count = (this.ofLength.get(length) ?? 0) + more;
    if (count > 0) this.ofLength.set(length, count);
    else this.ofLength.delete(length);
    if (count === 0 || count === more) this.lengths = [...this.ofLength.keys()].sort((one, other) => other - one);
  }
}

/** The index of the first key after a given one. */
export function firstAfter(keys: readonly string[], cursor: string): number {
  let [from, to] = [0, keys.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (keys[middle]! <= cursor) from = middle + 1;
    else to = middle;
  }
  return from;
}
