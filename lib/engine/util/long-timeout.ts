/** The maximum delay of a Node timer, in milliseconds. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** A timeout of any length, even beyond the maximum delay of a timer; `Infinity` never fires. */
export class LongTimeout {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    ms: number,
    callback: () => void,
    /** True if the timeout keeps the process alive. */
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
