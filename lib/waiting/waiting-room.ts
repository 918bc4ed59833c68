import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { refundOf } from '../check-result.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { RATE_LIMIT_STORE } from '../rate-limit.settings.js';
import type { Counter, Store, StoreDecision } from '../stores/store.js';
import { Waiter } from './waiter.js';
import { WaitingLine } from './waiting-line.js';

export interface WaitOptions {
  readonly cost: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** All who wait for units in this process. */
@Injectable()
export class WaitingRoom implements OnApplicationShutdown {
  private readonly lines = new Map<string, WaitingLine>();

  constructor(@Inject(RATE_LIMIT_STORE) private readonly store: Store) {}

  /** Waits until units are taken. Rejects with `RateLimitTimeoutError`, the signal's reason or the store's error. */
  wait(counter: Counter, options: WaitOptions): Promise<StoreDecision> {
    const { limit, identity } = counter;
    const giveBack = (decision: StoreDecision) => {
      const refund = refundOf({ ...counter, units: options.cost }, decision);
      // Units that cannot be given back come back by themselves in time.
      this.store.refund([refund]).then(
        () => this.wake(counter),
        () => undefined,
      );
    };
    const waiter = new Waiter({
      ...options,
      name: limit.name,
      maybeSooner: limit.algorithm.renew !== undefined,
      giveBack,
    });
    if (!waiter.isOver) {
      const key = keyOf(counter);
      let line = this.lines.get(key);
      if (line === undefined) {
        line = new WaitingLine({ limit, identity }, this.store, () => this.lines.delete(key));
        this.lines.set(key, line);
      }
      line.join(waiter);
    }
    return waiter.decided;
  }

  /** Units of a counter may have become free. */
  wake(counter: Counter): void {
    this.lines.get(keyOf(counter))?.wake();
  }

  onApplicationShutdown(): void {
    for (const line of this.lines.values()) line.close(new RateLimitStoreError(messages.closed()));
  }
}

function keyOf({ limit, identity }: Counter): string {
  return `${limit.id}\n${identity}`;
}
