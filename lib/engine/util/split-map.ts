/** The maximum number of keys in a part before it is split in two. A growing `Map` copies all of its entries at once. */
const MAX_PART_KEYS = 16_000;
/** The maximum number of splits of a part, in case keys have equal hashes. */
const MAX_DEPTH = 16;
/** Only the end of a key is hashed, which contains the identity. The beginning is often the same for a whole limit. */
const HASHED_CHARACTERS = 65;

/** The keys whose hashes have the same last `depth` bits. */
class Part<V> {
  readonly entries = new Map<string, V>();

  constructor(readonly depth: number) {}
}

/**
 * A map of any size that is never copied as a whole: it consists of maps with a few thousand keys each (extendible hashing). A `Map` with a
 * million keys blocks the process for 0.1 s whenever it grows or drops deleted entries.
 */
export class SplitMap<V> {
  private readonly seed = Math.floor(Math.random() * 2 ** 32);
  /** The parts by the last bits of the hash; a part is listed several times until it is split. */
  private parts: Part<V>[] = [new Part(0)];
  /** The last key looked up: if it was not found, it is likely to be added next. */
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

  /** All values. Values that are added or deleted during the iteration may be included. */
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

  /** The hash is seeded, so that clients cannot choose identities that end up in the same part. */
  private hash(key: string): number {
    let hash = this.seed;
    for (let i = Math.max(0, key.length - HASHED_CHARACTERS); i < key.length; i++) {
      hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
    }
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    return hash ^ (hash >>> 13);
  }
}
