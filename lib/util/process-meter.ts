import { availableParallelism } from 'node:os';

/** How often the timer is due, in milliseconds. */
const TICK_MS = 20;
/** How often the processors are looked at, in milliseconds. */
const CPU_MS = 250;
/** Nobody has asked for so long: the timer ends. */
const IDLE_MS = 5000;

/**
 * Measures how busy this process is. A timer says when it was due last: so how late the event loop is can be told at any moment, also
 * in the middle of a turn that blocks it. The timer runs only while somebody asks, and keeps no process alive.
 */
export class ProcessMeter {
  private timer: NodeJS.Timeout | undefined;
  private dueAt = 0;
  private askedAt = 0;
  private cpuAt = 0;
  private cpuBefore = 0;
  private share = 0;

  /** The times are milliseconds of the monotonic clock, and microseconds that all threads of the process used the processors. */
  constructor(
    private readonly now: () => number = () => performance.now(),
    private readonly used: () => number = cpuMicros,
    private readonly processors: number = availableParallelism(),
  ) {}

  /** How late the event loop is now, in microseconds. */
  get eventLoopDelay(): number {
    const now = this.now();
    this.askedAt = now;
    if (this.timer === undefined) this.start(now);
    return Math.max(0, now - this.dueAt) * 1000;
  }

  /** The share of the processors that the process used in the last quarter of a second or more: 0 to 1. */
  get cpu(): number {
    return this.share;
  }

  /** Ends the timer. It starts anew when somebody asks. */
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
