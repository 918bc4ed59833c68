/** A server counts as cut off if a call takes this many times as long as usual, and at least this many milliseconds. */
const TIMES = 4;
const LEAST_MS = 150;
/** The weight of the newest latency. */
const NEWEST = 0.2;

/** Tracks the latency of a server, and detects calls that take too long. */
export class Waits {
  private readonly open = new Set<{ readonly since: number }>();
  private latencyMs = 0;

  /** The usual latency of a call, in milliseconds; 0 before the first answer. */
  get usualMs(): number {
    return this.latencyMs;
  }

  /** True if a pending call has taken much longer than usual. */
  get areSuspicious(): boolean {
    if (this.open.size === 0) return false;
    // Sets keep the order in which calls began.
    const { value } = this.open.values().next() as IteratorYieldResult<{ readonly since: number }>;
    return performance.now() - value.since > Math.max(LEAST_MS, TIMES * this.latencyMs);
  }

  begin(since: number): object {
    const wait = { since };
    this.open.add(wait);
    return wait;
  }

  end(wait: object, isAnswered: boolean): void {
    const { since } = wait as { readonly since: number };
    this.open.delete(wait as { readonly since: number });
    if (!isAnswered) return;
    const took = performance.now() - since;
    this.latencyMs = this.latencyMs === 0 ? took : this.latencyMs + NEWEST * (took - this.latencyMs);
  }
}
