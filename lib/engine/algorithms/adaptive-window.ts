/** The maximum number of latencies per window; later ones replace the oldest. */
const MOST_SAMPLES = 512;

/** The observations between two adjustments of an adaptive limit. Times are microseconds. */
export class AdaptiveWindow {
  /** The latencies of requests that ended. */
  readonly samples: number[] = [];
  /** The units of requests that ended well. */
  completed = 0;
  /** The number of requests that ended well, and of those that ended by a timeout. */
  ended = 0;
  dropped = 0;
  /** The maximum number of units in flight, including those of the current request. */
  peak = 0;
  /** True if a request was rejected because of its priority. */
  refused = false;
  /** The longest delay of the event loop, and the highest use of the processors. */
  delay = 0;
  cpu = 0;

  constructor(readonly start: number) {}

  add(latency: number): void {
    this.samples[this.ended % MOST_SAMPLES] = latency;
    this.ended++;
  }

  /** The number of meaningful requests. */
  get size(): number {
    return this.ended + this.dropped;
  }
}

/**
 * The mean of the middle half: a few health checks and a few streams do not move it. Unlike a median, it is smooth if times are
 * whole milliseconds.
 */
export function midmean(samples: readonly number[]): number {
  const sorted = samples.toSorted((one, other) => one - other);
  const cut = Math.floor(sorted.length / 4);
  const middle = sorted.slice(cut, sorted.length - cut);
  return middle.reduce((sum, each) => sum + each, 0) / middle.length;
}

/**
 * The number of requests that show the latency at a level: the first that are let in at it, so that short ones are not over-represented.
 */
const COHORT = 24;
/** The number of these that must end. The others take longer, and the longest quarter is ignored anyway. */
const ENOUGH = 21;
/** The maximum number of latencies to keep of requests that were let in before. */
const MOST_BEFORE = 256;
/** If the latency falls below this fraction of the latency at twice the level, it falls with the queue. */
const FALLS = 0.75;

/**
 * Measures the latency without load. It halves the level as long as the latency keeps falling; the latency that remains is not caused by a
 * queue. Requests that were let in before the level was reached do not count. Times are microseconds.
 */
export class AdaptiveProbe {
  private readonly cohort = new Set<number>();
  private samples: number[] = [];
  /** The latencies of requests that were let in before. */
  private readonly before: number[] = [];
  private isReached = false;

  constructor(
    /** The number of units to let in during the probe. */
    public level: number,
    private readonly min: number,
    /** The previous latency, at twice the level. */
    private latency: number,
    /** The time at which it began. */
    readonly start: number,
    /** True if it also holds back `'critical'` requests. */
    readonly holdsForAll: boolean,
  ) {}

  /** Records the number of units in flight. */
  settle(inFlight: number): void {
    if (inFlight <= this.level) this.isReached = true;
  }

  /** Records a request that was let in. */
  entered(ticket: number): void {
    if (this.isReached && this.cohort.size + this.samples.length < COHORT) this.cohort.add(ticket);
  }

  /** Records a request that ended, with its latency if that is meaningful. Returns the latency without load once it is known. */
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
    // If a queue was still growing when the probe began, the requests that have left it since then show that.
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
