import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { type ClosableResponse, isGone, onClose } from '../../app/transports/connection.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';

/** The end of a hold: its time is up, the client has closed the connection, or the app shuts down. */
export type DelayEnd = 'over' | 'closed' | 'shut down';

/** The requests that are being held. */
@Injectable()
export class DelayedRequests implements OnModuleDestroy {
  private readonly ends = new Set<() => void>();
  private closed = false;

  /** Waits for a time, or until the client leaves or the app shuts down. */
  delay(
    delayMs: number,
    connection: (ClosableResponse & { shouldKeepAlive?: boolean }) | undefined,
  ): Promise<DelayEnd> {
    if (isGone(connection)) return Promise.resolve('closed');
    return new Promise((resolve) => {
      const done = (end: DelayEnd) => {
        alarm.clear();
        forget?.();
        this.ends.delete(shutDown);
        resolve(end);
      };
      const shutDown = () => {
        // A keep-alive connection of the client must not delay the server's shutdown.
        if (connection?.shouldKeepAlive === true) connection.shouldKeepAlive = false;
        done('shut down');
      };
      // While a client waits for the response, its socket keeps the process alive.
      const alarm = new LongTimeout(delayMs, () => done('over'), false);
      const forget = connection === undefined ? undefined : onClose(connection, () => done('closed'));
      this.ends.add(shutDown);
      if (this.closed) shutDown();
    });
  }

  /** Ends all holds, including future ones. Nest calls it before it waits for pending requests. */
  onModuleDestroy(): void {
    this.closed = true;
    for (const end of this.ends) end();
  }
}
