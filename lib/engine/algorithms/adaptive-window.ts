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
