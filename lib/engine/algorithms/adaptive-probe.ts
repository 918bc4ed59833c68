import { midmean } from './adaptive-window.js';

/**
 * The requests that show the latency at a level: the first that are let in at it, so that short ones are not over-represented.
 */
const COHORT = 24;
/** How many of them must end; the others take longer, and the longest quarter is ignored anyway. */
const ENOUGH = 21;
/** The latencies to keep of requests that were let in before. */
const MOST_BEFORE = 256;
/** If latency falls below this part of that at twice the level, it falls with the queue. */
const FALLS = 0.75;

/**
 * Measures the latency without load. It halves the level, and halves it again as long as latency falls. The latency that remains
 * is not due to a queue. Requests that were let in before the level was reached do not count. Times are microseconds.
 */
export class AdaptiveProbe {
  private readonly cohort = new Set<number>();
  private samples: number[] = [];
  /** The latencies of requests that were let in before. */
  private readonly before: number[] = [];
  private isReached = false;

  constructor(
    /** The units to let in meanwhile. */
    public level: number,
    private readonly min: number,
    /** The latency before, at twice the level. */
    private latency: number,
    /** When it began. */
    readonly start: number,
    /** Whether it also holds back `'critical'` requests. */
    readonly holdsForAll: boolean,
  ) {}

  /** Notes how many units are in flight. */
  settle(inFlight: number): void {
    if (inFlight <= this.level) this.isReached = true;
  }

  /** Notes a request that was let in. */
  entered(ticket: number): void {
    if (this.isReached && this.cohort.size + this.samples.length < COHORT) this.cohort.add(ticket);
  }

  /** Notes a request that ended, with its latency if that is meaningful. Returns the latency without load once it is known. */
  ended(ticket: number, latency: number | undefined): number | undefined {
    const belongs = this.cohort.delete(ticket);
    if (latency === undefined) return undefined;
    if (!belongs) {
      if (this.before.length < MOST_BEFORE) this.before.push(latency);
      return undefined;
    }
    this.samples.push(latency);
    const missing = COHORT - this.samples.length;
    if (missing > COHORT - ENOUGH) return undefined;
    const measured = midmean([...this.samples, ...Array.from({ length: missing }, () => Infinity)]);
    // If a queue was still growing when the probe began, the requests that have left it since show that.
    const before = this.before.length < COHORT ? this.latency : Math.max(this.latency, midmean(this.before));
    if (measured > FALLS * before || this.level <= this.min) return measured;
    this.latency = measured;
    this.before.length = 0;
    this.level = Math.max(this.min, Math.floor(this.level / 2));
    this.samples = [];
    this.cohort.clear();
    this.isReached = false;
    return undefined;
  }
}
