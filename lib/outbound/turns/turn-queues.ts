import { Inject, Injectable, type OnModuleDestroy, Optional } from '@nestjs/common';
import type { RateLimitSettings } from '../../config/settings.js';
import { RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../../config/tokens.js';
import { RateLimitStoreError } from '../../errors/errors.js';
import { messages } from '../../errors/messages/general.js';
import { type Counter, lineageId } from '../../limits/counter.js';
import { QueuesByCounter } from '../../limiter/queues-by-counter.js';
import { WaitingCount } from '../../limiter/waiting-count.js';
import type { Store } from '../../stores/store.js';
import type { OutboundRule } from '../learning/learned-rule.js';
import { TurnQueue } from './turn-queue.js';
import { type TakenTurn, type TurnEntry, type TurnOptions, WaitingCall } from './waiting-call.js';

/** The queues of all calls of this process that wait for their turn: one for each set of counters. */
@Injectable()
export class TurnQueues implements OnModuleDestroy {
  private readonly queues = new QueuesByCounter<TurnQueue>();
  /** The rules whose changes the queues are told. */
  private readonly subscribed = new WeakSet<OutboundRule>();
  private closed = false;

  private readonly count: WaitingCount;

  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    @Optional() @Inject(RATE_LIMIT_SETTINGS) settings?: Pick<RateLimitSettings, 'maxWaiters'>,
  ) {
    this.count = new WaitingCount(settings?.maxWaiters ?? Infinity);
  }

  /**
   * Waits until all limits let a call pass, and takes its units. Rejects with `RateLimitTimeoutError`, the signal's reason or the
   * store's error; with `RateLimitStoreError` when the app shuts down, and with `RateLimitWaitersError` if as many wait as may.
   */
  take(asks: readonly TurnEntry[], options: TurnOptions): Promise<TakenTurn> {
    if (this.closed) return Promise.reject(new RateLimitStoreError(messages.closed()));
    for (const { rule } of asks) this.subscribe(rule);
    const call = new WaitingCall(asks, options);
    if (!call.isSettled) this.queueOf(call).join(call);
    return call.taken;
  }

  /** Asks again: units of a counter may have become free. */
  wake({ limit, identity }: Counter): void {
    for (const queue of this.queues.of(lineageId(limit, identity))) queue.wake();
  }

  /** Is called by Nest: rejects all who wait. */
  onModuleDestroy(): void {
    this.closed = true;
    for (const queue of this.queues.all) queue.close(new RateLimitStoreError(messages.closed()));
  }

  private subscribe(rule: OutboundRule): void {
    if (this.subscribed.has(rule)) return;
    this.subscribed.add(rule);
    rule.onChange(() => {
      for (const queue of this.queues.ofAll(rule.limit.lineage)) queue.wake();
    });
  }

  private queueOf(call: WaitingCall): TurnQueue {
    const counters = call.entries.map(({ limit, identity }) => lineageId(limit, identity));
    const key = counters.map((counter) => `${counter.length} ${counter}`).join('\n');
    const { store, count } = this;
    return this.queues.find(key) ?? this.queues.add(key, counters, (ended) => new TurnQueue(store, count, ended));
  }
}
