/** The longest that a timer of Node can wait, in milliseconds. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** Calls back after any number of milliseconds, also more than a timer can wait; never for `Infinity`. */
export class LongTimeout {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    ms: number,
    callback: () => void,
    /** Whether the process stays alive for it. */
    private readonly keepsAlive = true,
  ) {
    this.set(ms, callback);
  }

  clear(): void {
    clearTimeout(this.timer);
  }

  private set(ms: number, callback: () => void): void {
    if (ms === Infinity) return;
    this.timer =
      ms > LONGEST_TIMEOUT_MS
        ? setTimeout(() => this.set(ms - LONGEST_TIMEOUT_MS, callback), LONGEST_TIMEOUT_MS)
        : setTimeout(callback, ms);
    if (!this.keepsAlive) this.timer.unref();
  }
}
