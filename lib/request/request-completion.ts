import type { ExecutionContext } from '@nestjs/common';
import type { Outcome } from '../config/common-limit-options.js';
import { type ClosableResponse, isGone, onClose } from '../transports/connection.js';

/** The part of Node's response that says how it ended. */
interface EndedResponse {
  readonly statusCode?: number;
  readonly headersSent?: boolean;
  readonly writableFinished?: boolean;
  /** Over HTTP/2 a response whose stream was reset has finished, but never ended. */
  readonly writableEnded?: boolean;
}

/** How a handler ended: `aborted` if it had lost its listener. */
export interface HandlerEnd {
  readonly failed: boolean;
  readonly error?: unknown;
  readonly aborted?: boolean;
}

/**
 * How one request ends: its connection reports that, or the handler where there is no connection, or one that says little. And when it is
 * over: once its response has been closed and no handler runs any more, since a handler goes on when its client has left.
 */
export class RequestCompletion {
  private readonly endListeners: ((outcome: Outcome) => void)[] = [];
  private readonly overListeners: ((outcome: Outcome) => void)[] = [];
  private handled: HandlerEnd | undefined;
  private outcome: Outcome | undefined;
  private running = 0;
  private isOver = false;
  /** Whether a limit, or the app as it shuts down, keeps the request from its handler. */
  wasRefused = false;

  /** Without a connection, only the handler says when the request is over. */
  constructor(
    private readonly context: ExecutionContext,
    private readonly connection: (ClosableResponse & EndedResponse) | undefined,
  ) {
    if (isGone(connection)) setImmediate(() => this.closed());
    else if (connection !== undefined) onClose(connection, () => this.closed());
  }

  /** Whether the response has been closed: a handler would run without a client, and without what was held for it. */
  get wasClosed(): boolean {
    return this.connection !== undefined && this.outcome !== undefined;
  }

  /** Calls back once, when it is known how the request ended; at once if it is, as when the client left while a guard was at work. */
  onEnd(listener: (outcome: Outcome) => void): void {
    if (this.outcome === undefined) this.endListeners.push(listener);
    else listener(this.outcome);
  }

  /** Calls back once, when the request is over; at once if it is. */
  onOver(listener: (outcome: Outcome) => void): void {
    if (this.isOver) listener(this.outcome!);
    else this.overListeners.push(listener);
  }

  /** The handler begins. Returns a function that reports its end, of which only the first call counts. */
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

  /** The handler is done, or will not run. Over HTTP filters and interceptors may still change what is answered. */
  handlerEnded(end: HandlerEnd): void {
    this.handled ??= end;
    if (this.connection === undefined) this.end({ aborted: false, ...end, context: this.context });
    this.finish();
  }

  private closed(): void {
    const { statusCode, headersSent, writableFinished, writableEnded } = this.connection ?? {};
    const isHttp = this.context.getType() === 'http';
    // What had failed before the client left has failed, whether it waited for the answer or not.
    const answeredBadly = isHttp && headersSent === true && (statusCode ?? 500) >= 400;
    const aborted = !answeredBadly && (writableFinished === false || writableEnded === false);
    const failed = isHttp ? (statusCode ?? 500) >= 400 : (this.handled?.failed ?? true);
    this.end({ failed: failed || aborted, statusCode, error: this.handled?.error, aborted, context: this.context });
  }

  private end(outcome: Outcome): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcome;
    for (const listener of this.endListeners) listener(outcome);
    this.finish();
  }

  private finish(): void {
    if (this.isOver || this.outcome === undefined || this.running > 0) return;
    this.isOver = true;
    for (const listener of this.overListeners) listener(this.outcome);
  }
}
