/** The most keys of a window whose units are counted. */
export const MOST_KEYS = 128;
/** One more than the largest hash. */
export const ALL_HASHES = 2 ** 32;

/** What the keys of a limit asked for in one interval: of all keys, or of those whose hash is below a bound. */
export interface KeyDemand {
  /** Keys with a smaller hash were counted, all of them: the same ones in every window and instance that has this bound. */
  readonly below: number;
  /** Units by the hash of the key. */
  readonly units: ReadonlyMap<number, number>;
}

/**
 * Counts the units that keys ask for in bounded memory: if there are too many keys, only those with a small hash are counted on. Each
 * of these has its exact number, and they are a random sample of all keys, the same one in other windows and instances
 * (consistent sampling: P. B. Gibbons, "Distinct sampling for highly-accurate answers to distinct values queries and event
 * reports", VLDB 2001).
 */
export class DemandWindow implements KeyDemand {
  readonly units = new Map<number, number>();
  below = ALL_HASHES;

  add(key: string, units: number): void {
    const hash = hash32(key);
    if (hash >= this.below) return;
    this.units.set(hash, (this.units.get(hash) ?? 0) + units);
    while (this.units.size > MOST_KEYS) this.narrow();
  }

  private narrow(): void {
    this.below /= 2;
    for (const hash of this.units.keys()) if (hash >= this.below) this.units.delete(hash);
  }
}

/** The demand of several instances in the same interval. What not all of them counted is left out. */
export function mergeDemand(parts: readonly KeyDemand[]): KeyDemand {
  const below = Math.min(ALL_HASHES, ...parts.map((part) => part.below));
  const units = new Map<number, number>();
  for (const part of parts) {
    for (const [hash, count] of part.units) if (hash < below) units.set(hash, (units.get(hash) ?? 0) + count);
  }
  return { below, units };
}

/** The stored form: `[below, hash, units, hash, units, …]` as JSON. */
export function writeDemand({ below, units }: KeyDemand): string {
  return JSON.stringify([below, ...[...units].flat()]);
}

/** Reads what is stored; `undefined` if it is not that, such as that of another release. */
export function readDemand(text: unknown): KeyDemand | undefined {
  try {
    const [below, ...rest] = JSON.parse(String(text)) as unknown[];
    if (![below, ...rest].every((value) => Number.isSafeInteger(value) && (value as number) >= 0)) return undefined;
    if (rest.length % 2 !== 0 || rest.length > 2 * MOST_KEYS) return undefined;
    const units = new Map<number, number>();
    for (let at = 0; at < rest.length; at += 2) units.set(rest[at] as number, rest[at + 1] as number);
    return { below: below as number, units };
  } catch {
    return undefined;
  }
}

/** FNV-1a over UTF-16 code units, with the last mixing of MurmurHash3, so that each bit of a key matters to each bit of its hash. */
function hash32(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
