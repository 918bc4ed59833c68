import { availableParallelism } from 'node:os';

/** The period of the timer, in milliseconds. */
const TICK_MS = 20;
/** The interval between samples of processor use, in milliseconds. */
const CPU_MS = 250;
/** The timer stops if the meter isn't read for this long, in milliseconds. */
const IDLE_MS = 5000;

/**
 * Measures the load of this process. A timer records the time at which it was last due, so the event loop's delay can be read at any
 * moment, even within a turn that blocks it. The timer only runs while the meter is read, and does not keep the process alive.
 */
export class ProcessMeter {
  private timer: NodeJS.Timeout | undefined;
  private dueAt = 0;
  private askedAt = 0;
  private cpuAt = 0;
  private cpuBefore = 0;
  private share = 0;

  /** The clocks: monotonic time in milliseconds, and the processor time of all threads of the process in microseconds. */
  constructor(
    private readonly now: () => number = () => performance.now(),
    private readonly used: () => number = cpuMicros,
    private readonly processors: number = availableParallelism(),
  ) {}

  /** The current delay of the event loop, in microseconds. */
  get eventLoopDelay(): number {
    const now = this.now();
    this.askedAt = now;
    if (this.timer === undefined) this.start(now);
    return Math.max(0, now - this.dueAt) * 1000;
  }

  /** The share of the processors that the process has used in the last quarter of a second or more: 0 to 1. */
  get cpu(): number {
    return this.share;
  }

  /** Stops the timer. The next read starts it again. */
  close(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private start(now: number): void {
    this.dueAt = now + TICK_MS;
    this.cpuAt = now;
    this.cpuBefore = this.used();
    this.share = 0;
    this.timer = setInterval(() => this.tick(), TICK_MS).unref();
  }

  private tick(): void {
    const now = this.now();
    this.dueAt = now + TICK_MS;
    const elapsed = now - this.cpuAt;
    if (elapsed >= CPU_MS) {
      const used = this.used();
      this.share = Math.min(1, (used - this.cpuBefore) / 1000 / elapsed / this.processors);
      this.cpuAt = now;
      this.cpuBefore = used;
    }
    if (now - this.askedAt > IDLE_MS) this.close();
  }
}

function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
