import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';

/**
 * Settles as the promise does, or rejects when the time is up. If the process was blocked for longer, its sockets are read first:
 * a reply that has already arrived wins. `leftMs` remain of `timeoutMs`, which the error of `late` names.
 */
export function withDeadline<T>(
  promise: Promise<T>,
  leftMs: number,
  timeoutMs = leftMs,
  late = storeTimeout,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const expire = () => reject(late(Math.round(timeoutMs)));
    const timer = setTimeout(() => setImmediate(expire), Math.max(0, leftMs));
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The error of a call that was not answered in time. */
export function storeTimeout(timeoutMs: number): RateLimitStoreError {
  return new RateLimitStoreError(messages.storeTimeout(timeoutMs), { code: 'SLUICE_STORE_TIMEOUT' });
}

/** The error of a check of several calls that ran out of time, although no server needed long for one of them. */
export function outOfTime(timeoutMs: number): RateLimitStoreError {
  const error = new RateLimitStoreError(messages.checkTooLong(timeoutMs), { code: 'SLUICE_STORE_TIMEOUT' });
  error.isOutOfTime = true;
  return error;
}

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
  /** @internal True until the client, which writes the commands of one turn in the next one, has had a turn to write it. */
  isUnsent = false;

  /** Called if there is no reply in time. */
  abstract expire(): void;
}

/** One timer for any number of calls with the same time limit. */
export class SharedDeadline {
  private oldest: TimedCall | undefined;
  private newest: TimedCall | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** The calls of this turn. */
  private readonly unsent: TimedCall[] = [];

  constructor(
    /** The maximum time of a call, in milliseconds. */
    private readonly timeoutMs: number,
    /** True if the client writes the commands of one turn in the next one, as node-redis does. */
    private readonly sendsNextTurn = false,
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
    if (!this.sendsNextTurn) return;
    call.isUnsent = true;
    if (this.unsent.push(call) === 1) setImmediate(this.nextTurn);
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
    // A call that begins again has already set a timer, which would go on next to this one.
    clearTimeout(this.timer);
    // While a reply may come, the connection itself keeps the process alive.
    this.timer = setTimeout(this.look, Math.max(1, ms)).unref();
  }

  private readonly nextTurn = (): void => {
    for (const call of this.unsent.splice(0)) call.isUnsent = false;
  };

  /** The oldest call is due first, since all have the same time limit. */
  private readonly look = (): void => {
    this.timer = undefined;
    const now = performance.now();
    let due = this.oldest;
    while (due !== undefined && due.until <= now) {
      const call = due;
      due = call.newer;
      if (call.isUnsent) {
        // The process was blocked since the call began, so its command isn't sent: its time begins now.
        this.end(call);
        this.begin(call);
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
