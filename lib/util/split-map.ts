/** The most keys of one part before it is split in two: a `Map` that grows copies all of its entries at once. */
const MAX_PART_KEYS = 16_000;
/** The most splits of a part, for keys of equal hashes. */
const MAX_DEPTH = 16;
/** The end of a key is its identity; what a key begins with may be of its limit. */
const HASHED_CHARACTERS = 65;

/** The keys whose hashes end in the same `depth` bits. */
class Part<V> {
  readonly entries = new Map<string, V>();

  constructor(readonly depth: number) {}
}

/**
 * A map of any number of keys that is never copied as a whole: it consists of maps of some thousands of keys (extendible
 * hashing). A `Map` of a million keys stops the process for 0.1 s whenever it grows, or clears out deleted entries.
 */
export class SplitMap<V> {
  private readonly seed = Math.floor(Math.random() * 2 ** 32);
  /** By the last bits of a hash; a part stands at several indexes until it is split. */
  private parts: Part<V>[] = [new Part(0)];
  /** A key that is not found is added next. */
  private lastKey = '';
  private lastPart: Part<V> | undefined;

  get(key: string): V | undefined {
    return this.partOf(key).entries.get(key);
  }

  set(key: string, value: V): void {
    const part = this.partOf(key);
    part.entries.set(key, value);
    if (part.entries.size > MAX_PART_KEYS && part.depth < MAX_DEPTH) this.split(part);
  }

  delete(key: string): void {
    this.partOf(key).entries.delete(key);
  }

  clear(): void {
    this.parts = [new Part(0)];
    this.lastPart = undefined;
  }

  /** All values; values that are added or deleted meanwhile may be among them. */
  *values(): IterableIterator<V> {
    for (const { entries } of new Set(this.parts)) yield* entries.values();
  }

  private partOf(key: string): Part<V> {
    const { parts } = this;
    if (parts.length === 1) return parts[0]!;
    if (this.lastPart !== undefined && key === this.lastKey) return this.lastPart;
    this.lastKey = key;
    return (this.lastPart = parts[this.hash(key) & (parts.length - 1)]!);
  }

  private split(part: Part<V>): void {
    this.lastPart = undefined;
    const bit = 1 << part.depth;
    const halves = [new Part<V>(part.depth + 1), new Part<V>(part.depth + 1)] as const;
    for (const [key, value] of part.entries) halves[this.hash(key) & bit ? 1 : 0].entries.set(key, value);
    if (bit === this.parts.length) this.parts = [...this.parts, ...this.parts];
    this.parts = this.parts.map((each, index) => (each === part ? halves[index & bit ? 1 : 0] : each));
  }

  /** Seeded, so that clients cannot choose identities of one part. */
  private hash(key: string): number {
    let hash = this.seed;
    for (let i = Math.max(0, key.length - HASHED_CHARACTERS); i < key.length; i++) {
      hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
    }
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    return hash ^ (hash >>> 13);
  }
}
