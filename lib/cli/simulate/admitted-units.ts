/** So many times are kept of one counter; beyond, those that are close become one. */
const MOST_TIMES = 65_536;
const FEWEST_TIMES = 4;

/** The units that one counter admitted in the last stretch of a length. */
export class AdmittedUnits {
  /** A ring of times, the earliest first, each with its units behind it: what lies together is read together. */
  private ring: number[] = [];
  private head = 0;
  private count = 0;
  private sum = 0;
  /** Microseconds in which all times count as the first of them. */
  private grain = 0;

  /** Whether no time was moved. */
  get isExact(): boolean {
    return this.grain === 0;
  }

  /** How many numbers it has room for. */
  get room(): number {
    return this.ring.length;
  }

  /** The time of the first units in the stretch. */
  get start(): number {
    return this.ring[this.head] ?? 0;
  }

  /** Adds units, no earlier than those before, and says how many the stretch (time - length, time] holds. */
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

  /** Forgets what was admitted until a time. */
  private drop(until: number): void {
    while (this.count > 0 && this.ring[this.head]! <= until) {
      this.sum -= this.ring[this.head + 1]!;
      this.head = this.indexOf(1);
      this.count--;
    }
  }

  /** The ring has a power of two of numbers. */
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
    // From now on there are never as many again. Units that count as earlier ones leave the stretch too early, so it never
    // shows more than it held.
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
