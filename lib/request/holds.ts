import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { type ClosableResponse, isGone, onClose } from '../transports/connection.js';
import { LongTimeout } from '../util/long-timeout.js';

/** How a hold ends: its time is over, the client has closed the connection, or the app shuts down. */
export type HoldEnd = 'over' | 'closed' | 'shut down';

/** The requests that are held. */
@Injectable()
export class Holds implements OnModuleDestroy {
  private readonly ends = new Set<() => void>();
  private closed = false;

  /** Waits. If the client goes away or the app shuts down, no longer. */
  hold(delayMs: number, connection: (ClosableResponse & { shouldKeepAlive?: boolean }) | undefined): Promise<HoldEnd> {
    if (isGone(connection)) return Promise.resolve('closed');
    return new Promise((resolve) => {
      const done = (end: HoldEnd) => {
        alarm.clear();
        forget?.();
        this.ends.delete(shutDown);
        resolve(end);
      };
      const shutDown = () => {
        // Its client shall not keep the server waiting with a connection for later.
        if (connection?.shouldKeepAlive === true) connection.shouldKeepAlive = false;
        done('shut down');
      };
      // The client's socket keeps the process alive as long as anyone waits for the answer.
      const alarm = new LongTimeout(delayMs, () => done('over'), false);
      const forget = connection === undefined ? undefined : onClose(connection, () => done('closed'));
      this.ends.add(shutDown);
      if (this.closed) shutDown();
    });
  }

  /** Ends all holds, also those to come: Nest calls it before it waits for the requests that are under way. */
  onModuleDestroy(): void {
    this.closed = true;
    for (const end of this.ends) end();
  }
}
