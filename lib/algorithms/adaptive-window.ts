/** The most latencies that are kept of one window; later ones replace the oldest. */
const MOST_SAMPLES = 512;

/** What is seen between two looks at an adaptive limit. Times are microseconds. */
export class AdaptiveWindow {
  /** How long requests took that ended. */
  readonly samples: number[] = [];
  /** Units that ended well. */
  completed = 0;
  /** Requests that ended well, and those that ended by a timeout. */
  ended = 0;
  dropped = 0;
  /** The most units that were in flight, with the one that asked. */
  peak = 0;
  /** Whether somebody was refused for his priority. */
  refused = false;
  /** The latest that the event loop was, and the most of the processors that was used. */
  delay = 0;
  cpu = 0;

  constructor(readonly start: number) {}

  add(latency: number): void {
    this.samples[this.ended % MOST_SAMPLES] = latency;
    this.ended++;
  }

  /** How many requests say something. */
  get size(): number {
    return this.ended + this.dropped;
  }
}

/**
 * The mean of the middle half: a few health checks and a few streams do not move it. It is smooth where times are whole
 * milliseconds, which a median is not.
 */
export function midmean(samples: readonly number[]): number {
  const sorted = samples.toSorted((one, other) => one - other);
  const cut = Math.floor(sorted.length / 4);
  const middle = sorted.slice(cut, sorted.length - cut);
  return middle.reduce((sum, each) => sum + each, 0) / middle.length;
}
