import type { ExecutionContext } from '@nestjs/common';
import type { Outcome } from '../limit-definition.js';
import { type ClosableResponse, isGone, onClose } from '../transports/connection.js';

/** The part of Node's response that says how it ended. */
interface EndedResponse {
  readonly statusCode?: number;
  readonly writableFinished?: boolean;
  /** Over HTTP/2 a response whose stream was reset has finished, but never ended. */
  readonly writableEnded?: boolean;
}

/** How one request ends: told by its connection or, where there is none or it says little, by what the handler did. */
export class Ending {
  private listeners: ((outcome: Outcome) => void)[] = [];
  private handled: { readonly error?: unknown; readonly failed: boolean } | undefined;
  private outcome: Outcome | undefined;

  /** Without a connection, only the handler says when the request is over. */
  constructor(
    private readonly context: ExecutionContext,
    private readonly connection: (ClosableResponse & EndedResponse) | undefined,
  ) {
    if (isGone(connection)) setImmediate(() => this.closed());
    else if (connection !== undefined) onClose(connection, () => this.closed());
  }

  /** Calls back once, when the request is over; at once if it is, as when the client left while a guard was at work. */
  onEnd(listener: (outcome: Outcome) => void): void {
    if (this.outcome === undefined) this.listeners.push(listener);
    else listener(this.outcome);
  }

  /** The handler is done. Over HTTP filters and interceptors may still change what is answered. */
  handlerEnded(failed: boolean, error?: unknown): void {
    this.handled ??= { failed, error };
    if (this.connection === undefined) this.end({ failed, error, aborted: false, context: this.context });
  }

  private closed(): void {
    const { statusCode, writableFinished, writableEnded } = this.connection ?? {};
    const aborted = writableFinished === false || writableEnded === false;
    const isHttp = this.context.getType() === 'http';
    const failed = isHttp ? (statusCode ?? 500) >= 400 : (this.handled?.failed ?? true);
    this.end({ failed: failed || aborted, statusCode, error: this.handled?.error, aborted, context: this.context });
  }

  private end(outcome: Outcome): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcome;
    for (const listener of this.listeners) listener(outcome);
  }
}
