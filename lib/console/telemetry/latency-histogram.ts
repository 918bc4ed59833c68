/** The shortest time that is distinguished, in milliseconds. */
const SHORTEST_MS = 0.001;
/** Classes for each doubling: quantiles are accurate within 5 %. */
const PER_DOUBLING = 8;
/** The number of classes from a microsecond to more than a minute. */
const CLASSES = 27 * PER_DOUBLING;

/** Durations of checks, in classes that grow with the duration. */
export class LatencyHistogram {
  private readonly counts = new Uint32Array(CLASSES);

  add(ms: number): void {
    const index = Math.floor(Math.log2(Math.max(ms, SHORTEST_MS) / SHORTEST_MS) * PER_DOUBLING);
    this.counts[Math.min(index, CLASSES - 1)]!++;
  }

  /** Removes and returns its contents. */
  take(): Map<number, number> {
    const taken = new Map<number, number>();
    for (let index = 0; index < CLASSES; index++) if (this.counts[index]! > 0) taken.set(index, this.counts[index]!);
    this.counts.fill(0);
    return taken;
  }
}

/** The duration that a share of the checks did not exceed, in milliseconds; `null` if there were none. */
export function quantile(classes: ReadonlyMap<number, number>, part: number): number | null {
  let left = part * [...classes.values()].reduce((sum, count) => sum + count, 0);
  if (left <= 0) return null;
  for (const [index, count] of [...classes].toSorted(([one], [other]) => one - other)) {
    left -= count;
    // The geometric middle of the class.
    if (left <= 0) return Number((SHORTEST_MS * 2 ** ((index + 0.5) / PER_DOUBLING)).toPrecision(3));
  }
  return null;
}
