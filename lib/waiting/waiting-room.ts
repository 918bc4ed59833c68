import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { CompiledLimit } from '../algorithms/limit.js';
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
  private readonly givingBack = new Set<Promise<void>>();

  constructor(@Inject(RATE_LIMIT_STORE) private readonly store: Store) {}

  /** Waits until units are taken. Rejects with `RateLimitTimeoutError`, the signal's reason or the store's error. */
  wait(counter: Counter, options: WaitOptions): Promise<StoreDecision> {
    const { limit, identity } = counter;
    const giveBack = (decision: StoreDecision) => {
      const refund = refundOf({ ...counter, units: options.cost }, decision);
      // Units that cannot be given back come back by themselves in time.
      const given = this.store
        .refund([refund])
        .then(
          () => this.wake(counter),
          () => undefined,
        )
        .finally(() => this.givingBack.delete(given));
      this.givingBack.add(given);
    };
    const waiter = new Waiter({
      ...options,
      name: limit.name,
      maybeSooner: limit.algorithm.renew !== undefined,
      spacingMs: spacingMs(limit),
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

  /** Nobody waits any more. What was taken for later is given back before the store is closed. */
  async onApplicationShutdown(): Promise<void> {
    const closed = new RateLimitStoreError(messages.closed());
    await Promise.all([...this.lines.values()].map((line) => line.close(closed)));
    await Promise.all(this.givingBack);
  }
}

function keyOf({ limit, identity }: Counter): string {
  return `${limit.id}\n${identity}`;
}

/** How far apart units leave a queue. */
function spacingMs({ algorithm, parameters }: CompiledLimit): number | undefined {
  return algorithm.spacing === undefined ? undefined : algorithm.spacing(parameters) / 1000;
}
