import { SpaceSaving } from './space-saving.js';

/** The counters of an instance, for the refused keys of all its limits. */
const COUNTERS = 20_480;
/** What a limit gets with its first refused key; 2,200 limits have room for that. */
const LEAST = 8;
/** The most counters of one limit. */
const MOST = 256;
/** How many keys may take over a counter in a second; each takes about 0.3 µs. */
const MOST_TAKEN = 10_000;
/** Beyond that, one of this many keys does so, and stands for all of them. */
const SAMPLED = 32;

/**
 * Divides a number of counters between limits by need. A limit starts with few of them and doubles them when its keys need more.
 * When none are left, the limit with the most gives half of them to one that has less than that. In a flood of different keys only
 * some of them are counted, so that the cost is bounded.
 */
export class KeyBudget {
  private readonly sketches = new Set<SpaceSaving>();
  /** Those that got no more: they ask again in the next period. */
  private readonly denied = new Set<SpaceSaving>();
  private left: number;
  private taken = 0;

  constructor(total = COUNTERS) {
    this.left = total;
  }

  /** Counters for the keys of a limit. */
  open(): SpaceSaving {
    while (this.left < LEAST && this.shrinkLargest(2 * LEAST));
    const size = Math.max(1, Math.min(LEAST, this.left));
    this.left -= size;
    const sketch = new SpaceSaving(size, this.onFull);
    this.sketches.add(sketch);
    return sketch;
  }

  /** Takes the counters back; the sketch must not count any more. */
  close(sketch: SpaceSaving): void {
    if (!this.sketches.delete(sketch)) return;
    this.denied.delete(sketch);
    this.left += sketch.size;
  }

  /** Called once a second. */
  turn(): void {
    this.taken = 0;
  }

  private readonly onFull = (sketch: SpaceSaving): number => {
    const { size } = sketch;
    if (size < MOST) this.grow(sketch);
    if (sketch.size > size || ++this.taken <= MOST_TAKEN) return 1;
    return this.taken % SAMPLED === 0 ? SAMPLED : 0;
  };

  private grow(sketch: SpaceSaving): void {
    const { size } = sketch;
    if (this.denied.has(sketch)) return;
    // Whoever gives keeps at least as many as the other one gets.
    const more = Math.min(size, MOST - size);
    if (this.left < more && !this.shrinkLargest(4 * size)) {
      this.denied.add(sketch);
      return;
    }
    this.left -= more;
    sketch.resize(size + more);
  }

  /** Halves the largest sketch. Returns whether it had at least that many counters. */
  private shrinkLargest(least: number): boolean {
    let largest: SpaceSaving | undefined;
    for (const each of this.sketches) if (each.size > (largest?.size ?? 0)) largest = each;
    if (largest === undefined || largest.size < least) return false;
    const given = largest.size >> 1;
    largest.resize(largest.size - given);
    this.left += given;
    return true;
  }
}
