import type { State } from '../../algorithms/algorithm.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { BoundedMap, Kept } from '../../util/bounded-map.js';

/** How long a counter is refused: until a time, and for how long that was; in microseconds. */
export interface Block {
  readonly until: number;
  readonly duration: number;
}

/** A counter as it is stored. */
export class Entry extends Kept {
  /** Nothing if it equals a fresh one. */
  state: State | undefined;
  block: Block | undefined;
  /** The quota that its units were carried over to. */
  carried: number | undefined;
  /** When the state equals a fresh one and may be forgotten, in microseconds. */
  expiresAt = 0;
}

const SWEEP_INTERVAL_MS = 100;
/** A sweep looks at one in so many of the counters that may be kept, so that it never holds the process up. */
const SWEEP_SHARE = 100;

/** How much memory may be taken for each counter that may be kept, on the average. Most take less than half of it. */
const BYTES_A_KEY = 1000;
/** Few counters may be large ones. */
const LEAST_BYTES = 16_000_000;
/** What a counter with a key of no characters takes, in bytes: as it was measured, without what its algorithm lists. */
const ENTRY_BYTES = 400;
/** Identities need not be ASCII. */
const CHARACTER_BYTES = 2;

/** How many bytes so many counters may take, unless told otherwise. */
export function defaultMaxBytes(maxKeys: number): number {
  return Math.max(LEAST_BYTES, Math.min(maxKeys * BYTES_A_KEY, Number.MAX_SAFE_INTEGER));
}

/** The counters of a process, bounded, with one timer that forgets those that have run out. */
export class CounterTable {
  private readonly entries: BoundedMap<Entry>;
  private timer: NodeJS.Timeout | undefined;
  private sweeping: Iterator<Entry> | undefined;

  constructor(
    private readonly maxKeys: number,
    maxBytes: number,
    /** The time in whole microseconds. */
    private readonly clock: () => number,
  ) {
    this.entries = new BoundedMap(maxKeys, maxBytes);
  }

  get size(): number {
    return this.entries.size;
  }

  get bytes(): number {
    return this.entries.bytes;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  /** Keeps an entry as it is now. Blocks and leases are remembered when there is no room for all the rest. */
  keep({ algorithm }: CompiledLimit, entry: Entry): void {
    const { key, state, block } = entry;
    const listed = state === undefined ? 0 : (algorithm.bytes?.(state) ?? 0);
    const bytes = ENTRY_BYTES + CHARACTER_BYTES * key.length + listed;
    this.entries.put(entry, bytes, block !== undefined || algorithm.holding !== undefined);
    this.timer ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS).unref();
  }

  /** An entry was used, though nothing of it changed. */
  touch(entry: Entry): void {
    this.entries.touch(entry);
  }

  forget(key: string): void {
    const entry = this.entries.get(key);
    if (entry !== undefined) this.entries.delete(entry);
  }

  clear(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.entries.clear();
  }

  /** Forgets a share of the counters that have run out; ends the timer when none is left. */
  private sweep(): void {
    const now = this.clock();
    for (let looked = Math.ceil(this.maxKeys / SWEEP_SHARE); looked > 0; looked--) {
      this.sweeping ??= this.entries.values();
      const { done, value } = this.sweeping.next();
      if (done === true) {
        this.sweeping = undefined;
        break;
      }
      if (value.expiresAt <= now) this.entries.delete(value);
    }
    if (this.entries.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
