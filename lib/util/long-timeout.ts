/** The longest that a timer of Node can wait, in milliseconds. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** A timeout of any length, longer than a timer's longest delay included; `Infinity` never ends. */
export class LongTimeout {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    ms: number,
    callback: () => void,
    /** Whether the timeout keeps the process alive. */
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
