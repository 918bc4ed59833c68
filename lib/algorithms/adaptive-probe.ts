import { midmean } from './adaptive-window.js';

/** Requests that say what latency is at a level: the first that are let in at it, so that it is not the short ones that end first. */
const COHORT = 24;
/** So many of them have to end; the others take longer, and the longest quarter is left out anyway. */
const ENOUGH = 21;
/** So many latencies are kept of requests that were let in before. */
const MOST_BEFORE = 256;
/** Latency that falls below this part of that of twice the level falls with the queue. */
const FALLS = 0.75;

/**
 * Measures the latency without load: halves how many are let in, and halves it again as long as latency falls with it. What then stays
 * is no queue. Requests that were let in before the level was reached say nothing. Times are microseconds.
 */
export class AdaptiveProbe {
  private readonly cohort = new Set<number>();
  private samples: number[] = [];
  /** The latencies of those that were let in before. */
  private readonly before: number[] = [];
  private isReached = false;

  constructor(
    /** How many are let in meanwhile. */
    public level: number,
    private readonly min: number,
    /** The latency before, at twice the level. */
    private latency: number,
    /** When it began. */
    readonly start: number,
    /** Whether it holds for `'critical'` requests, too. */
    readonly holdsForAll: boolean,
  ) {}

  /** So many are in flight now. */
  settle(inFlight: number): void {
    if (inFlight <= this.level) this.isReached = true;
  }

  /** A request was let in. */
  entered(ticket: number): void {
    if (this.isReached && this.cohort.size + this.samples.length < COHORT) this.cohort.add(ticket);
  }

  /** A request ended; its latency if it says anything. Gives the latency without load once it is known. */
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
    // A queue that was still growing when the probe began is known by those that left it since.
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
