/** The maximum drift between the clocks of two servers, which is also the share by which the estimate is late. */
const DRIFT = 0.0005;

/**
 * The time of the home, based on this process's monotonic clock. The last time that the home reported is valid even if the home's clock is
 * set back afterwards: its counters then count for longer by that much.
 */
export class HomeClock {
  /** The time that the home reported, in microseconds; and when it was requested and answered, in milliseconds of the process's clock. */
  private said = 0;
  private askedAt = 0;
  private askedAtDate = 0;
  private answeredAt = -Infinity;

  /**
   * @param patienceMs calls to the region's own server that take longer than this are not trusted
   * @param region a number for the name of the region
   */
  constructor(
    private readonly patienceMs: number,
    readonly region = 0,
  ) {}

  /** Milliseconds since the time was last set; `Infinity` if it never was. */
  get ageMs(): number {
    return performance.now() - this.answeredAt;
  }

  /** Sets the time from an answer to a call that was sent at `askedAt`, in milliseconds of the process's clock. */
  set(said: number, askedAt: number): void {
    // Answers may arrive out of order.
    if (askedAt < this.askedAt) return;
    this.said = said;
    this.askedAt = askedAt;
    this.answeredAt = performance.now();
    this.askedAtDate = Date.now() - (this.answeredAt - askedAt);
  }

  /** The latest possible time at the home when a call sent now is decided, in microseconds; 0 if unknown. */
  latest(): number {
    if (this.said === 0) return 0;
    // The monotonic clock stops while a machine sleeps, and the system clock may be set back.
    const sinceMs = Math.max(performance.now() - this.askedAt, Date.now() - this.askedAtDate);
    return Math.ceil(this.said + 1000 * (sinceMs * (1 + DRIFT) + this.patienceMs));
  }

  /** The best guess of the home's time, in microseconds; 0 if unknown. */
  now(): number {
    if (this.said === 0) return 0;
    return Math.floor(this.said + 1000 * (performance.now() - this.answeredAt));
  }
}

/** A server counts as cut off if a call takes this many times as long as usual, and at least this many milliseconds. */
const TIMES = 4;
const LEAST_MS = 150;
/** The weight of the newest latency. */
const NEWEST = 0.2;

interface Wait {
  readonly since: number;
}

/** Tracks the latency of a server, and detects calls that take too long. */
export class Waits {
  private readonly open = new Set<Wait>();
  /** The usual latency of a call, in milliseconds; 0 before the first answer. */
  usualMs = 0;

  /** True if a pending call has taken much longer than usual. */
  get areSuspicious(): boolean {
    // Sets keep the order in which calls began.
    const [oldest] = this.open;
    return oldest !== undefined && performance.now() - oldest.since > Math.max(LEAST_MS, TIMES * this.usualMs);
  }

  begin(since: number): Wait {
    const wait = { since };
    this.open.add(wait);
    return wait;
  }

  end(wait: Wait, isAnswered: boolean): void {
    this.open.delete(wait);
    if (!isAnswered) return;
    const took = performance.now() - wait.since;
    this.usualMs = this.usualMs === 0 ? took : this.usualMs + NEWEST * (took - this.usualMs);
  }
}
