/** How much longer than usual a call may take before the server is taken for cut off: so many times, and at least so many milliseconds. */
const TIMES = 4;
const LEAST_MS = 150;
/** The weight of the newest latency. */
const NEWEST = 0.2;

/** How long calls to a server take, and whether those under way take too long. */
export class Waits {
  private readonly open = new Set<{ readonly since: number }>();
  private latencyMs = 0;

  /** How long a call usually takes, in milliseconds; 0 if none was answered. */
  get usualMs(): number {
    return this.latencyMs;
  }

  /** Whether a call has waited for much longer than they do usually. */
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
