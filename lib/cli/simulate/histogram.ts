/** A histogram of waits: exact up to two seconds, and beyond that rounded up by less than a thousandth. */
export class Histogram {
  private readonly counts = new Map<number, number>();
  /** The number of waits. */
  count = 0;
  /** The longest wait. */
  max = 0;

  /** Adds a wait in whole milliseconds. */
  add(ms: number): void {
    const index = indexOf(ms);
    this.counts.set(index, (this.counts.get(index) ?? 0) + 1);
    this.count++;
    if (ms > this.max) this.max = ms;
  }

  /** The smallest wait that this share of all waits does not exceed; 0 if there are none. */
  quantile(share: number): number {
    let left = Math.ceil(share * this.count);
    for (const [index, count] of [...this.counts].toSorted(([one], [other]) => one - other)) {
      left -= count;
      if (left <= 0) return Math.min(this.max, upperEnd(index));
    }
    return 0;
  }
}

/** The eleven leading bits of a number determine its class. */
const EXACT = 2048;
const HALF = EXACT / 2;

function indexOf(ms: number): number {
  let bits = 0;
  while (ms >= EXACT) {
    ms = Math.floor(ms / 2);
    bits++;
  }
  return bits * HALF + ms;
}

function upperEnd(index: number): number {
  if (index < EXACT) return index;
  const bits = Math.floor(index / HALF) - 1;
  return (index - bits * HALF + 1) * 2 ** bits - 1;
}
