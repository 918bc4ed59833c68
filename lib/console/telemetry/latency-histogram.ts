/** The shortest time that is told apart, in milliseconds. */
const SHORTEST_MS = 0.001;
/** Classes for each doubling: a quantile is told within 5 %. */
const PER_DOUBLING = 8;
/** So many classes reach from a microsecond to more than a minute. */
const CLASSES = 27 * PER_DOUBLING;

/** How long checks took, in classes that grow with the time. */
export class LatencyHistogram {
  private readonly counts = new Uint32Array(CLASSES);

  add(ms: number): void {
    const index = Math.floor(Math.log2(Math.max(ms, SHORTEST_MS) / SHORTEST_MS) * PER_DOUBLING);
    this.counts[Math.min(index, CLASSES - 1)]!++;
  }

  /** Takes out what is in it. */
  take(): Map<number, number> {
    const taken = new Map<number, number>();
    for (let index = 0; index < CLASSES; index++) if (this.counts[index]! > 0) taken.set(index, this.counts[index]!);
    this.counts.fill(0);
    return taken;
  }
}

/** The time that a part of the checks took at most, in milliseconds; `null` if there was none. */
export function quantile(classes: ReadonlyMap<number, number>, part: number): number | null {
  let left = part * [...classes.values()].reduce((sum, count) => sum + count, 0);
  if (left <= 0) return null;
  for (const [index, count] of [...classes].toSorted(([one], [other]) => one - other)) {
    left -= count;
    // The middle of the class, by its logarithm.
    if (left <= 0) return Number((SHORTEST_MS * 2 ** ((index + 0.5) / PER_DOUBLING)).toPrecision(3));
  }
  return null;
}
