import type { ExecutionContext } from '@nestjs/common';
import type { Outcome } from '../../app/config/common-limit-options.js';
import { answerOf } from '../../app/transports/answer.js';
import { type ClosableResponse, isGone, onClose } from '../../app/transports/connection.js';
import { countSent, type SentBytes } from '../../app/transports/sent-bytes.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import type { CallRun } from './call-run.js';

/** The members of Node's response that show how it ended. */
interface EndedResponse {
  readonly statusCode?: number;
  readonly headersSent?: boolean;
  readonly writableFinished?: boolean;
  /** For HTTP/2, a response whose stream was reset has finished, but has not ended. */
  readonly writableEnded?: boolean;
}

/**
 * The time that a request which has ended waits for its running parts, in milliseconds. They may never end, for example if one waits for a
 * client that has left.
 */
export const LEFT_BEHIND_MS = 600_000;

const NOT_MEASURED = {};

/** The end of a handler: `aborted` if it had lost its subscriber, `overdue` if it still runs and nothing waits for it any more. */
export interface HandlerEnd {
  readonly failed: boolean;
  readonly error?: unknown;
  readonly aborted?: boolean;
  readonly overdue?: boolean;
}

/**
 * Reports two events of a request. The end comes from its connection, or from the handler if there is no connection or the connection
 * reports too little. The request is over once its response is closed and no part of it runs any more, because guards and handlers continue
 * after the client has left.
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
  /** True if a limit, or the app's shutdown, keeps the request from its handler. */
  wasRefused = false;

  /** Without a connection, only the handler reports when the request is over. */
  constructor(
    private readonly context: ExecutionContext,
    private readonly connection: (ClosableResponse & EndedResponse) | undefined,
  ) {
    if (isGone(connection)) setImmediate(() => this.closed());
    else if (connection !== undefined) onClose(connection, () => this.closed());
  }

  /** True if the response has been closed. A handler would then run without a client, and without the leases held for it. */
  get wasClosed(): boolean {
    return this.connection !== undefined && this.outcome !== undefined;
  }

  /**
   * Calls back once the outcome of the request is known; immediately if it already is, for example because the client left during a guard.
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

  /** Restarts the clock: the request has waited for its turn. */
  measureAgain(): void {
    if (this.since !== undefined) this.since = performance.now();
  }

  /** Calls back once the request is over; immediately if it already is. */
  onOver(listener: (outcome: Outcome) => void): void {
    if (this.isOver) listener(this.outcome!);
    else this.overListeners.push(listener);
  }

  /** Calls back once the request has ended, and all of its running parts may never end. */
  onLingering(listener: () => void): void {
    this.lingeringListeners.push(listener);
  }

  /** Calls back once the client only has to read the rest of the response, or once the request is over. */
  onServed(listener: (outcome: Outcome) => void): void {
    this.servedListeners.push(listener);
    answerOf(this.connection!).onComplete(() => this.serve());
  }

  /** True if only the client has something left to do. */
  get isServed(): boolean {
    return this.running === 0 && this.connection?.writableEnded === true && this.runs.every(({ isIdle }) => isIdle);
  }

  /** True if the response, if any, has never waited for its client, and the client did not interrupt it. */
  get wasRead(): boolean {
    const { connection, outcome } = this;
    if (connection === undefined) return true;
    return !answerOf(connection).waited && !(outcome?.aborted === true && connection.headersSent === true);
  }

  /** The request isn't over while any part of this call runs. A call that a guard rejects has no handler. */
  follow(run: CallRun): void {
    if (this.runs.includes(run)) return;
    this.runs.push(run);
    run.onIdle(() => this.finish());
    run.onRefused((error) => this.handlerEnded({ failed: true, error }));
  }

  /** Called when the handler starts. Returns a function that reports its end; only its first call counts. */
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

  /** Called when the handler is done, or will not run. Over HTTP, filters and interceptors may still change the response. */
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
    // A response that had failed before the client left still counts as failed, even if the client did not wait for it.
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
