/** A histogram of waits: exact up to two seconds, and beyond that rounded up by less than a thousandth. */
export class Histogram {
  private readonly counts = new Map<number, number>();
  count = 0;
  max = 0;

  /** Adds a wait in whole milliseconds. */
  add(ms: number): void {
    const index = indexOf(ms);
    this.counts.set(index, (this.counts.get(index) ?? 0) + 1);
    this.count++;
    if (ms > this.max) this.max = ms;
  }

  /** The shortest wait that this share of all waits doesn't exceed; 0 if there are none. */
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

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** The steps of a timeline, in milliseconds; each is a multiple of the one before. */
const STEPS = [
  [1, 5, 10, 50, 100, 500, SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND],
  [MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 6 * HOUR, 12 * HOUR],
  [DAY, 7 * DAY, 28 * DAY, 364 * DAY],
].flat();
/** Maximum number of steps; beyond that they get longer. */
const MOST_STEPS = 600;

/** Allowed and rejected requests over time, in steps that get longer as the simulation goes on. */
export class Timeline {
  private step = 0;
  /** The number of the first step: its start / its length. */
  private firstStep = -1;
  /** The requests of each step. */
  allowed: number[] = [];
  refused: number[] = [];

  get stepMs(): number {
    return STEPS[this.step]!;
  }

  /** When the first step begins, in milliseconds since the epoch. */
  get startMs(): number {
    return Math.max(0, this.firstStep) * this.stepMs;
  }

  /** Adds a request, no earlier than the first one, with its time in microseconds. */
  add(time: number, isAllowed: boolean): void {
    if (this.firstStep < 0) this.firstStep = Math.floor(time / (this.stepMs * 1000));
    let index = Math.floor(time / (this.stepMs * 1000)) - this.firstStep;
    while (index >= MOST_STEPS && this.step < STEPS.length - 1) {
      this.lengthen();
      index = Math.floor(time / (this.stepMs * 1000)) - this.firstStep;
    }
    while (this.allowed.length <= index) {
      this.allowed.push(0);
      this.refused.push(0);
    }
    const counts = isAllowed ? this.allowed : this.refused;
    counts[index]!++;
  }

  private lengthen(): void {
    const factor = STEPS[this.step + 1]! / this.stepMs;
    const first = Math.floor(this.firstStep / factor);
    const merged = (counts: readonly number[]) => {
      const sums: number[] = [];
      for (const [index, count] of counts.entries()) {
        const at = Math.floor((this.firstStep + index) / factor) - first;
        sums[at] = (sums[at] ?? 0) + count;
      }
      return sums;
    };
    this.allowed = merged(this.allowed);
    this.refused = merged(this.refused);
    this.firstStep = first;
    this.step++;
  }
}
