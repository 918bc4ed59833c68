import { Inject, Injectable, type OnApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { Rule } from '../rules/rule.js';
import { RATE_LIMIT_STORE } from '../config/tokens.js';
import type { Charge, Refund, Store, StoreDecision } from '../stores/store.js';
import { type Counter, lineageId } from '../limits/counter.js';
import { Waiter, type WaitOptions } from './waiter.js';
import { WaitQueue } from './wait-queue.js';

/** All who wait for units in this process. */
@Injectable()
export class WaitQueues implements OnModuleDestroy, OnApplicationShutdown {
  /** By counter. Queues outlive a rate, also one that began with fresh counters. */
  private readonly queues = new Map<string, WaitQueue>();
  private readonly givingBack = new Set<Promise<void>>();
  /** Limits whose changes are followed. */
  private readonly followed = new WeakSet<Rule>();
  /** Those who wait until refunds are done, by counter, and those who came behind them. */
  private readonly recalled = new Map<string, { refunds: number; waiters: Waiter[] }>();
  private closed = false;

  constructor(@Inject(RATE_LIMIT_STORE) private readonly store: Store) {}

  /**
   * Waits until units are taken. Rejects with `RateLimitTimeoutError`, the signal's reason or the store's error; with a
   * `RateLimitStoreError`, too, if the app shuts down before.
   */
  wait(rule: Rule, identity: string, options: WaitOptions): Promise<StoreDecision> {
    if (this.closed) return this.takeOrLeave({ limit: rule.limit, identity }, options);
    if (!this.followed.has(rule)) {
      this.followed.add(rule);
      rule.onChange(() => this.follow(rule));
    }
    const waiter = new Waiter(() => rule.limit, options);
    if (!waiter.isOver) this.join(waiter, rule.limit, identity);
    return waiter.decided;
  }

  /** Gives units back that were consumed, whoever did. */
  async refund(charge: Charge): Promise<void> {
    if (charge.limit.algorithm.queue === undefined) await this.store.refund([charge]);
    else await this.refundQueue(charge);
    this.wake(charge);
  }

  /** They are taken off the end of a queue: no place of those who wait may be there. */
  private async refundQueue(charge: Charge): Promise<void> {
    const { limit, identity } = charge;
    const key = lineageId(limit, identity);
    const recalled = this.queues.get(key)?.recall();
    const queue = this.recalled.get(key) ?? { refunds: 0, waiters: [] };
    this.recalled.set(key, queue);
    queue.refunds++;
    queue.waiters.push(...(recalled?.waiters ?? []));
    try {
      await this.store.refund([...(recalled?.refunds ?? []), charge]);
    } finally {
      if (--queue.refunds === 0) {
        this.recalled.delete(key);
        for (const waiter of queue.waiters) {
          if (this.closed) waiter.reject(closedError());
          else if (!waiter.isOver) this.join(waiter, limit, identity);
        }
      }
    }
  }

  /** Units of a counter may have become free. */
  wake({ limit, identity }: Counter): void {
    this.queues.get(lineageId(limit, identity))?.wake();
  }

  /** All that was counted is forgotten, also what was taken for those who wait. */
  restart({ limit, identity }: Counter): void {
    this.queues.get(lineageId(limit, identity))?.restart();
  }

  /** Nobody waits any more. What was taken for later is given back before the store is closed. */
  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.queues.values()].map((line) => line.close(closedError())));
    await this.onApplicationShutdown();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.givingBack);
  }

  private join(waiter: Waiter, limit: CompiledLimit, identity: string): void {
    const key = lineageId(limit, identity);
    const recalled = this.recalled.get(key);
    if (recalled !== undefined) {
      recalled.waiters.push(waiter);
      return;
    }
    let line = this.queues.get(key);
    if (line === undefined) {
      const made = new WaitQueue(waiter, {
        identity,
        store: this.store,
        giveBack: (refunds) => this.giveBack(refunds),
        // It may say so again once another one has begun.
        onEmpty: () => this.queues.get(key) === made && this.queues.delete(key),
      });
      this.queues.set(key, (line = made));
    }
    line.join(waiter);
  }

  private follow(rule: Rule): void {
    const { lineage } = rule.limit;
    for (const [key, line] of this.queues) if (key.startsWith(lineage)) line.follow();
  }

  /** Units that cannot be given back come back by themselves in time. */
  private giveBack(refunds: readonly Refund[]): void {
    const given = this.store
      .refund(refunds)
      .then(
        () => this.wake(refunds[0]!),
        () => undefined,
      )
      .finally(() => this.givingBack.delete(given));
    this.givingBack.add(given);
  }

  /** While the app shuts down nobody waits. */
  private async takeOrLeave(counter: Counter, { cost, signal }: WaitOptions): Promise<StoreDecision> {
    signal?.throwIfAborted();
    const answer = await this.store.reserve({ ...counter, cost, maxWaitMs: 0 });
    if (!answer.allowed) throw closedError();
    return answer;
  }
}

function closedError(): RateLimitStoreError {
  return new RateLimitStoreError(messages.closed());
}
