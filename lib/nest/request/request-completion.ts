import type { ExecutionContext } from '@nestjs/common';
import type { Outcome } from '../../app/config/common-limit-options.js';
import { answerOf } from '../../app/transports/answer.js';
import { type ClosableResponse, isGone, onClose } from '../../app/transports/connection.js';
import { countSent, type SentBytes } from '../../app/transports/sent-bytes.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import type { CallRun } from './call-run.js';

/** The part of Node's response that shows how it ended. */
interface EndedResponse {
  readonly statusCode?: number;
  readonly headersSent?: boolean;
  readonly writableFinished?: boolean;
  /** For HTTP/2, a response whose stream was reset has finished, but has not ended. */
  readonly writableEnded?: boolean;
}

/**
 * How long a request that has ended waits for what is still running, in milliseconds. Nothing guarantees that this ever ends: it
 * may wait for a client that has left.
 */
export const LEFT_BEHIND_MS = 600_000;

const NOT_MEASURED = {};

/** How a handler ended: `aborted` if it had lost its listener, `overdue` if it still runs and nothing waits for it any more. */
export interface HandlerEnd {
  readonly failed: boolean;
  readonly error?: unknown;
  readonly aborted?: boolean;
  readonly overdue?: boolean;
}

/**
 * The end of one request: its connection reports it, or the handler if there is no connection, or one that reports little. And
 * when it is over: once its response is closed and nothing of it runs any more, since guards and handlers go on after the client
 * has left.
 */
export class RequestCompletion {
  private readonly endListeners: ((outcome: Outcome) => void)[] = [];
  private readonly overListeners: ((outcome: Outcome) => void)[] = [];
  private readonly lingeringListeners: (() => void)[] = [];
  private readonly servedListeners: ((outcome: Outcome) => void)[] = [];
  private readonly runs: CallRun[] = [];
  private handled: HandlerEnd | undefined;
  private outcome: Outcome | undefined;
  private running = 0;
  private leftBehind: LongTimeout | undefined;
  private isOver = false;
  private served = false;
  private sent: SentBytes | undefined;
  /** When measuring began, on the clock of `performance`. */
  private since: number | undefined;
  /** Whether a limit, or the app's shutdown, keeps the request from its handler. */
  wasRefused = false;

  /** Without a connection, only the handler reports when the request is over. */
  constructor(
    private readonly context: ExecutionContext,
    private readonly connection: (ClosableResponse & EndedResponse) | undefined,
  ) {
    if (isGone(connection)) setImmediate(() => this.closed());
    else if (connection !== undefined) onClose(connection, () => this.closed());
  }

  /** Whether the response has been closed: a handler would run without a client, and without the leases held for it. */
  get wasClosed(): boolean {
    return this.connection !== undefined && this.outcome !== undefined;
  }

  /**
   * Calls back once it is known how the request ended; at once if it already is, for example if the client left during a guard.
   */
  onEnd(listener: (outcome: Outcome) => void): void {
    if (this.outcome === undefined) this.endListeners.push(listener);
    else listener(this.outcome);
  }

  /** Measures from now on how long the request takes, and how much of its response is sent. */
  measure(): void {
    this.since ??= performance.now();
    if (this.isHttp && this.connection !== undefined) this.sent ??= countSent(this.connection);
  }

  /** Begins to measure the time anew: the request has waited for its turn. */
  measureAgain(): void {
    if (this.since !== undefined) this.since = performance.now();
  }

  /** Calls back once the request is over; at once if it already is. */
  onOver(listener: (outcome: Outcome) => void): void {
    if (this.isOver) listener(this.outcome!);
    else this.overListeners.push(listener);
  }

  /** Calls back once the request has ended, and all that is left of it may never end. */
  onLingering(listener: () => void): void {
    this.lingeringListeners.push(listener);
  }

  /** Calls back once only the client has to read the rest of its response; or once the request is over. */
  onServed(listener: (outcome: Outcome) => void): void {
    this.servedListeners.push(listener);
    answerOf(this.connection!).onComplete(() => this.serve());
  }

  /** Whether only the client has something left to do. */
  get isServed(): boolean {
    return this.running === 0 && this.connection?.writableEnded === true && this.runs.every(({ isIdle }) => isIdle);
  }

  /** Whether the response, if any, has never waited for its client, and was not cut off by it. */
  get wasRead(): boolean {
    const { connection, outcome } = this;
    if (connection === undefined) return true;
    return !answerOf(connection).waited && !(outcome?.aborted === true && connection.headersSent === true);
  }

  /** Keeps the request from being over while anything of a call runs. A call that a guard refuses has no handler. */
  follow(run: CallRun): void {
    if (this.runs.includes(run)) return;
    this.runs.push(run);
    run.onIdle(() => this.finish());
    run.onRefused((error) => this.handlerEnded({ failed: true, error }));
  }

  /** Notes that the handler starts. Returns a function that reports its end; only its first call counts. */
  handlerStarted(): (end: HandlerEnd) => void {
    let done = false;
    this.running++;
    return (end) => {
      if (done) return;
      done = true;
      this.running--;
      this.handlerEnded(end);
    };
  }

  /** Notes that the handler is done, or will not run. Over HTTP, filters and interceptors may still change the response. */
  handlerEnded(end: HandlerEnd): void {
    this.handled ??= end;
    if (this.connection === undefined) {
      const { failed, error, aborted = false } = end;
      this.end({ failed, error, aborted, ...this.measured(), context: this.context });
    }
    if (end.overdue === true) this.linger();
    this.finish();
  }

  private closed(): void {
    const { statusCode, headersSent, writableFinished, writableEnded } = this.connection ?? {};
    // What had failed before the client left has failed, whether the client waited for the response or not.
    const answeredBadly = this.isHttp && headersSent === true && (statusCode ?? 500) >= 400;
    const aborted = !answeredBadly && (writableFinished === false || writableEnded === false);
    this.end(this.outcomeOf(aborted));
  }

  private get isHttp(): boolean {
    return this.context.getType() === 'http';
  }

  private outcomeOf(aborted: boolean): Outcome {
    const { statusCode } = this.connection ?? {};
    const failed = this.isHttp ? (statusCode ?? 500) >= 400 : (this.handled?.failed ?? true);
    const { context } = this;
    return { failed: failed || aborted, statusCode, error: this.handled?.error, aborted, ...this.measured(), context };
  }

  private measured(): Pick<Outcome, 'bytes' | 'durationMs'> {
    if (this.since === undefined) return NOT_MEASURED;
    return { bytes: this.sent?.(), durationMs: performance.now() - this.since };
  }

  private serve(): void {
    if (this.served || !this.isServed) return;
    this.served = true;
    for (const listener of this.servedListeners) listener(this.outcome ?? this.outcomeOf(false));
  }

  private end(outcome: Outcome): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcome;
    for (const listener of this.endListeners) listener(outcome);
    this.finish();
    if (!this.isOver) this.leftBehind = new LongTimeout(LEFT_BEHIND_MS, () => this.linger(), false);
  }

  private finish(): void {
    if (this.servedListeners.length > 0) this.serve();
    if (this.isOver || this.outcome === undefined || this.running > 0) return;
    if (this.runs.every(({ isIdle }) => isIdle)) {
      this.isOver = true;
      this.leftBehind?.clear();
      for (const listener of this.overListeners) listener(this.outcome);
    } else if (this.runs.every(({ isIdle, isLingering }) => isIdle || isLingering)) {
      this.linger();
    }
  }

  private linger(): void {
    this.leftBehind?.clear();
    for (const listener of this.lingeringListeners.splice(0)) listener();
  }
}
