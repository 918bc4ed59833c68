/** A slower reply shows the time less exactly, and is used only if no faster one came for this long, in milliseconds. */
const BELIEVED_MS = 10_000;

/** The Redis server's clock, as learnt from replies; this process's own until there is one. */
export class ConsoleClock {
  /** How much it is ahead of the monotonic clock. */
  private ahead: number | undefined;
  private roundTripMs = Infinity;
  private learntAt = -Infinity;

  /** Milliseconds since the epoch. */
  now(): number {
    return this.ahead === undefined ? Date.now() : performance.now() + this.ahead;
  }

  /** Whether a reply has shown the server's time. */
  get isLearnt(): boolean {
    return this.ahead !== undefined;
  }

  /** How much the clock of this process is ahead of it, in milliseconds. */
  get offsetMs(): number {
    return Math.round(Date.now() - this.now());
  }

  /** Learns the server's `time`, in milliseconds, from a reply. Both other times are those of the monotonic clock. */
  learn(time: number, sentAt: number, answeredAt: number): void {
    const roundTripMs = answeredAt - sentAt;
    const isOlder = answeredAt - this.learntAt > BELIEVED_MS;
    if (roundTripMs > this.roundTripMs * 2 + 1 && !isOlder) return;
    this.ahead = time + roundTripMs / 2 - answeredAt;
    this.roundTripMs = roundTripMs;
    this.learntAt = answeredAt;
  }
}
