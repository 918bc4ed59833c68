import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';

/**
 * Maximum number of balances and of credit ids, and the bytes that each may take; the least recently used is evicted first.
 */
const MAX_ENTRIES = 100_000;
const MAX_BYTES = 50_000_000;
const ENTRY_BYTES = 150;

class Entry extends Kept {
  constructor(
    key: string,
    /** The credits left; or, for an id, how long it is remembered. */
    public value: number,
  ) {
    super(key);
  }
}

/** Prepaid units of counters. Neither a reset nor the end of a window removes them. The script keeps the same in separate keys. */
export class Credits {
  private readonly balances = new BoundedMap<Entry>(MAX_ENTRIES, MAX_BYTES);
  private readonly ids = new BoundedMap<Entry>(MAX_ENTRIES, MAX_BYTES);

  of(key: string): number {
    return this.balances.get(key)?.value ?? 0;
  }

  set(key: string, balance: number): void {
    put(this.balances, key, balance > 0 ? balance : undefined);
  }

  /** Remembers an id for `keep` microseconds. Returns true if it was new. */
  note(id: string, now: number, keep: number): boolean {
    const known = this.ids.get(id);
    if (known !== undefined && known.value > now) return false;
    put(this.ids, id, now + keep);
    return true;
  }

  clear(): void {
    this.balances.clear();
    this.ids.clear();
  }
}

function put(map: BoundedMap<Entry>, key: string, value: number | undefined): void {
  const before = map.get(key);
  if (before !== undefined) map.delete(before);
  if (value !== undefined) map.put(new Entry(key, value), ENTRY_BYTES + 2 * key.length, false);
}
