/** A slower answer tells less of the time, and is believed only if no faster one came for so long. */
const BELIEVED_MS = 10_000;

/** The Redis server's clock, as its answers tell; this process's own until one came. */
export class ConsoleClock {
  /** What it is ahead of the monotonic clock. */
  private ahead: number | undefined;
  private roundTripMs = Infinity;
  private learntAt = -Infinity;

  /** Milliseconds since the epoch. */
  now(): number {
    return this.ahead === undefined ? Date.now() : performance.now() + this.ahead;
  }

  /** Whether the server has told its time. */
  get isLearnt(): boolean {
    return this.ahead !== undefined;
  }

  /** What the clock of this process is ahead of it, in milliseconds. */
  get offsetMs(): number {
    return Math.round(Date.now() - this.now());
  }

  /** The server said that it was `time`, in milliseconds, to a question that was sent and answered at times of the monotonic clock. */
  learn(time: number, sentAt: number, answeredAt: number): void {
    const roundTripMs = answeredAt - sentAt;
    const isOlder = answeredAt - this.learntAt > BELIEVED_MS;
    if (roundTripMs > this.roundTripMs * 2 + 1 && !isOlder) return;
    this.ahead = time + roundTripMs / 2 - answeredAt;
    this.roundTripMs = roundTripMs;
    this.learntAt = answeredAt;
  }
}
