/** A call that must end in time. */
export abstract class TimedCall {
  /** @internal */
  older: TimedCall | undefined;
  /** @internal */
  newer: TimedCall | undefined;
  /** @internal When its time is over, in milliseconds of the process's clock. */
  until = 0;
  /** @internal */
  isTimed = false;

  /** Its time is over, and no answer is there. */
  abstract expire(): void;
}

/** One timer for any number of calls, each of which may take the same time. */
export class SharedDeadline {
  private oldest: TimedCall | undefined;
  private newest: TimedCall | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    /** How long a call may take, in milliseconds. */
    private readonly timeoutMs: number,
  ) {}

  /** The time of a call begins now. */
  begin(call: TimedCall): void {
    call.until = performance.now() + this.timeoutMs;
    call.isTimed = true;
    call.older = this.newest;
    if (this.newest === undefined) this.oldest = call;
    else this.newest.newer = call;
    this.newest = call;
    if (this.timer === undefined) this.arm(this.timeoutMs);
  }

  /** A call has ended, in time or not. */
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
    // The connection keeps the process alive while an answer may come.
    this.timer = setTimeout(this.look, Math.max(1, ms)).unref();
  }

  /** The oldest call is due first, since all may take equally long. */
  private readonly look = (): void => {
    this.timer = undefined;
    const now = performance.now();
    let due = this.oldest;
    while (due !== undefined && due.until <= now) {
      const call = due;
      due = call.newer;
      // A process that was busy for longer reads its sockets first: a reply that is already there wins.
      setImmediate(() => {
        if (!call.isTimed) return;
        this.end(call);
        call.expire();
      });
    }
    if (due !== undefined) this.arm(Math.ceil(due.until - now));
  };
}
