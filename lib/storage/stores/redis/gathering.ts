/** An instance gathers checks while it is asked this many a millisecond or more. */
const BUSY = 2;
/** How long it counts before it decides whether it is busy. */
const SPAN_MS = 50;

/** Decides whether an instance is asked often enough that waiting for more checks pays. */
export class Gathering {
  private count = 0;
  private since = 0;
  private isBusy = false;

  /** @param longestMs how long checks wait for others at most; 0 never waits */
  constructor(private readonly longestMs: number) {}

  /** Counts checks that were sent. */
  sent(checks: number): void {
    this.count += checks;
  }

  /** How long checks wait from now on for others, in milliseconds; 0 if not at all. `now` is the process's monotonic clock. */
  waitMs(now: number): number {
    const { longestMs } = this;
    if (longestMs === 0) return 0;
    const elapsed = now - this.since;
    if (elapsed >= SPAN_MS) {
      this.isBusy = this.count >= BUSY * elapsed;
      this.count = 0;
      this.since = now;
    }
    return this.isBusy ? longestMs : 0;
  }
}
