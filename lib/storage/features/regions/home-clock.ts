import type { HomeTime } from './limit-regions.js';

/** How fast the clocks of two servers may drift apart at most, and the share by which time is estimated late for that. */
const DRIFT = 0.0005;

/**
 * The time of the home, by the clock of this process, which nobody sets back. What the home said last holds: if its clock was set back,
 * its counters count for as much longer.
 */
export class HomeClock implements HomeTime {
  /** What the home said, in microseconds, and when it was asked and had answered, in milliseconds of the process's clock. */
  private said = 0;
  private askedAt = 0;
  private askedAtDate = 0;
  private answeredAt = -Infinity;

  /**
   * @param patienceMs the longest that a call to the region's own server may take and still be believed
   * @param region a number for the name of the region
   */
  constructor(
    private readonly patienceMs: number,
    readonly region = 0,
  ) {}

  /** Milliseconds since it was last set; `Infinity` if it never was. */
  get ageMs(): number {
    return performance.now() - this.answeredAt;
  }

  /** Learns the home's time from an answer to a call that was sent then, in milliseconds of the process's clock. */
  set(said: number, askedAt: number): void {
    // Answers may overtake each other.
    if (askedAt < this.askedAt) return;
    this.said = said;
    this.askedAt = askedAt;
    this.answeredAt = performance.now();
    this.askedAtDate = Date.now() - (this.answeredAt - askedAt);
  }

  latest(): number {
    if (this.said === 0) return 0;
    // A machine that sleeps stops the one clock, and whoever sets the other one may set it back.
    const sinceMs = Math.max(performance.now() - this.askedAt, Date.now() - this.askedAtDate);
    return Math.ceil(this.said + 1000 * (sinceMs * (1 + DRIFT) + this.patienceMs));
  }

  now(): number {
    if (this.said === 0) return 0;
    return Math.floor(this.said + 1000 * (performance.now() - this.answeredAt));
  }
}
