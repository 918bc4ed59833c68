/** A call that must end within its time. */
export abstract class TimedCall {
  /** @internal */
  older: TimedCall | undefined;
  /** @internal */
  newer: TimedCall | undefined;
  /** @internal When its time is up, in milliseconds of the process's clock. */
  until = 0;
  /** @internal */
  isTimed = false;

  /** @internal True if its time was extended once. */
  isProlonged = false;

  /** Called if there is no reply in time. */
  abstract expire(): void;

  /** Returns true if it may still be in this process, in a client that sends the commands of a turn in the next turn. */
  isHeld(): boolean {
    return false;
  }
}

/** A timer that is this late, in milliseconds, means that the process was blocked. */
const LATE_MS = 10;

/** One timer for any number of calls with the same time limit. */
export class SharedDeadline {
  private oldest: TimedCall | undefined;
  private newest: TimedCall | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    /** The maximum time of a call, in milliseconds. */
    private readonly timeoutMs: number,
  ) {}

  /** Starts the time of a call. */
  begin(call: TimedCall): void {
    call.until = performance.now() + this.timeoutMs;
    call.isTimed = true;
    call.older = this.newest;
    if (this.newest === undefined) this.oldest = call;
    else this.newest.newer = call;
    this.newest = call;
    if (this.timer === undefined) this.arm(this.timeoutMs);
  }

  /** Ends a call, in time or not. */
  end(call: TimedCall): void {
    if (!call.isTimed) return;
    const { older, newer } = call;
    if (older === undefined) this.oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.newest = older;
    else newer.older = older;
    call.older = call.newer = undefined;
    call.isTimed = false;
  }

  private arm(ms: number): void {
    // While a reply may come, the connection itself keeps the process alive.
    this.timer = setTimeout(this.look, Math.max(1, ms)).unref();
  }

  /** The oldest call is due first, since all have the same time limit. */
  private readonly look = (): void => {
    this.timer = undefined;
    const now = performance.now();
    let due = this.oldest;
    while (due !== undefined && due.until <= now) {
      const call = due;
      due = call.newer;
      if (now - call.until > LATE_MS && !call.isProlonged && call.isHeld()) {
        // A command that has not been sent yet gets its time from now on.
        this.end(call);
        this.begin(call);
        call.isProlonged = true;
        continue;
      }
      // If the process was blocked for longer, its sockets are read first, so that a reply that has already arrived wins.
      setImmediate(() => {
        if (!call.isTimed) return;
        this.end(call);
        call.expire();
      });
    }
    if (due !== undefined) this.arm(Math.ceil(due.until - now));
  };
}
