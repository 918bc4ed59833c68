import type { ExecutionContext } from '@nestjs/common';
import type { Outcome } from '../limit-definition.js';
import type { ClosableResponse } from '../http/transport.js';

/** The part of Node's response that says how it ended. */
interface EndedResponse {
  readonly statusCode?: number;
  readonly writableFinished?: boolean;
}

/** How one request ends: told by its connection or, where there is none or it says little, by what the handler did. */
export class Ending {
  private listeners: ((outcome: Outcome) => void)[] = [];
  private handled: { readonly error?: unknown; readonly failed: boolean } | undefined;
  private over = false;

  /** Without a connection, only the handler says when the request is over. */
  constructor(
    private readonly context: ExecutionContext,
    private readonly connection: (ClosableResponse & EndedResponse) | undefined,
  ) {
    if (connection?.destroyed === true) setImmediate(() => this.closed());
    else connection?.once('close', () => this.closed());
  }

  /** Calls back once, when the request is over. */
  onEnd(listener: (outcome: Outcome) => void): void {
    this.listeners.push(listener);
  }

  /** The handler is done. Over HTTP filters and interceptors may still change what is answered. */
  handlerEnded(failed: boolean, error?: unknown): void {
    this.handled ??= { failed, error };
    if (this.connection === undefined) this.end({ failed, error, aborted: false, context: this.context });
  }

  private closed(): void {
    const { statusCode, writableFinished } = this.connection ?? {};
    const aborted = writableFinished === false;
    const isHttp = this.context.getType() === 'http';
    const failed = isHttp ? (statusCode ?? 500) >= 400 : (this.handled?.failed ?? true);
    this.end({ failed: failed || aborted, statusCode, error: this.handled?.error, aborted, context: this.context });
  }

  private end(outcome: Outcome): void {
    if (this.over) return;
    this.over = true;
    for (const listener of this.listeners) listener(outcome);
  }
}
