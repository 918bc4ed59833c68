/** Maximum number of times to keep for one counter; beyond that, times close together are merged. */
const MOST_TIMES = 65_536;
const FEWEST_TIMES = 4;

/** The units that one counter admitted in the latest period of a given length. */
export class AdmittedUnits {
  /** A ring of times, the earliest first, each followed by its units, so that both are close in memory. */
  private ring: number[] = [];
  private head = 0;
  private count = 0;
  private sum = 0;
  /** Times within this many microseconds count as the first of them. */
  private grain = 0;

  get isExact(): boolean {
    return this.grain === 0;
  }

  /** The capacity for numbers. */
  get room(): number {
    return this.ring.length;
  }

  /** The time of the first units in the period. */
  get start(): number {
    return this.ring[this.head] ?? 0;
  }

  /** Adds units, not earlier than those before. Returns the units in the period (time - length, time]. */
  add(time: number, units: number, length: number): number {
    this.drop(time - length);
    this.sum += units;
    const last = this.indexOf(this.count - 1);
    if (this.count > 0 && time - this.ring[last]! <= this.grain) {
      this.ring[last + 1]! += units;
      return this.sum;
    }
    if (2 * this.count === this.ring.length) this.makeRoom(length);
    const next = this.indexOf(this.count++);
    this.ring[next] = time;
    this.ring[next + 1] = units;
    return this.sum;
  }

  private drop(until: number): void {
    while (this.count > 0 && this.ring[this.head]! <= until) {
      this.sum -= this.ring[this.head + 1]!;
      this.head = this.indexOf(1);
      this.count--;
    }
  }

  /** The size of the ring is a power of two. */
  private indexOf(place: number): number {
    return (this.head + 2 * place) & (this.ring.length - 1);
  }

  private makeRoom(length: number): void {
    const inOrder = [...this.ring.slice(this.head), ...this.ring.slice(0, this.head)];
    this.head = 0;
    if (this.count < MOST_TIMES) {
      const more = Array.from({ length: 2 * Math.max(FEWEST_TIMES, this.count) }, () => 0);
      this.ring = [...inOrder, ...more];
      return;
    }
    // From now on there can't be this many times again. Merged units count as earlier ones and leave the period too early, so the result is
    // never too high.
    this.grain = Math.ceil((2 * length) / MOST_TIMES);
    let last = 0;
    for (let at = 2; at < inOrder.length; at += 2) {
      if (inOrder[at]! - inOrder[last]! <= this.grain) inOrder[last + 1]! += inOrder[at + 1]!;
      else {
        last += 2;
        inOrder[last] = inOrder[at]!;
        inOrder[last + 1] = inOrder[at + 1]!;
      }
    }
    this.count = last / 2 + 1;
    this.ring = inOrder;
  }
}
