import { Inject, Injectable, type OnApplicationShutdown, type OnModuleDestroy, Optional } from '@nestjs/common';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import { RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import type { Rule } from '../rules/rule.js';
import { RATE_LIMIT_LISTS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../config/tokens.js';
import type { RateLimitSettings } from '../config/settings.js';
import { Lists } from '../overrides/lists/lists.js';
import { openDecision } from '../stores/store-decision.js';
import type { Charge, Refund, Store, StoreDecision } from '../stores/store.js';
import { type CheckEntry, type Counter, lineageId } from '../limits/counter.js';
import { DEFAULT_PRIORITY, PRIORITIES, type Priority } from '../limits/priority.js';
import { KeptLeases } from './kept-leases.js';
import { LevelWaits } from './level-waits.js';
import { Waiter, type WaitOptions } from './waiter.js';
import { WaitingCount } from './waiting-count.js';
import { WaitQueue } from './wait-queue.js';

const NO_QUEUES: readonly WaitQueue[] = [];

/** The queues of all counters that calls of this process wait for. */
@Injectable()
export class WaitQueues implements OnModuleDestroy, OnApplicationShutdown {
  /** What is held while its work goes on. */
  readonly kept = new KeptLeases();
  /** By counter and, where a part of it is kept for some, priority. Queues outlive a rate, also one that began with fresh counters. */
  private readonly queues = new Map<string, WaitQueue>();
  private readonly pendingRefunds = new Set<Promise<void>>();
  /** The rules whose changes the queues are told. */
  private readonly subscribed = new WeakSet<Rule>();
  /** How many refunds take units off the end of a counter's queue just now. */
  private readonly suspensions = new Map<string, number>();
  private readonly count: WaitingCount;
  private closed = false;
  /** Those who wait for units of several levels at once. */
  private readonly levels: LevelWaits;

  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    @Optional() @Inject(RATE_LIMIT_LISTS) private readonly lists?: Lists,
    @Optional() @Inject(RATE_LIMIT_SETTINGS) settings?: Pick<RateLimitSettings, 'maxWaiters'>,
  ) {
    this.count = new WaitingCount(settings?.maxWaiters ?? Infinity);
    this.levels = new LevelWaits(store, this.count);
    lists?.onChange(() => this.onListsChanged());
  }

  /** The same as `wait`, for units of a limit and of all that it is within. The key tells its own counter from all others. */
  waitForLevels(
    key: string,
    entries: () => readonly CheckEntry[],
    options: WaitOptions,
  ): Promise<readonly StoreDecision[]> {
    return this.levels.wait(key, entries, this.closed ? { ...options, timeoutMs: 0 } : options);
  }

  /**
   * Waits until units may be used. Rejects with `RateLimitTimeoutError`, the signal's reason or the store's error; and with
   * `RateLimitStoreError` when the app shuts down, and with `RateLimitWaitersError` if as many wait as may.
   */
  wait(rule: Rule, identity: string, options: WaitOptions): Promise<StoreDecision> {
    const currentLimit = limitOf(rule, identity, options);
    if (this.closed) return this.reserveNow({ limit: currentLimit(), identity }, options);
    if (!this.subscribed.has(rule)) {
      this.subscribed.add(rule);
      rule.onChange(() => this.onLimitChanged(rule));
    }
    if (this.count.isFull) return Promise.reject(this.count.refusalOfAll(rule.name));
    this.count.begin();
    const waiter = new Waiter(currentLimit, options, this.count.end);
    if (!waiter.isSettled) this.join(waiter, identity);
    return waiter.decided;
  }

  /** Refunds consumed units, of whichever call. */
  async refund(charge: Charge): Promise<void> {
    if (charge.limit.algorithm.queue === undefined) await this.store.refund([charge]);
    else await this.refundFromQueue(charge);
    this.wake(charge);
  }

  /** Takes units off the end of the store's queue. Units of waiters may not stand there: they are refunded first, and reserved again. */
  private async refundFromQueue(charge: Charge): Promise<void> {
    const key = lineageId(charge.limit, charge.identity);
    this.suspensions.set(key, (this.suspensions.get(key) ?? 0) + 1);
    // The last units first.
    const refunds = this.queuesOf(charge)
      .flatMap((queue) => queue.suspend())
      .toSorted((one, other) => other.ticket! - one.ticket!);
    try {
      await this.store.refund([...refunds, charge]);
    } finally {
      const left = this.suspensions.get(key)! - 1;
      if (left > 0) this.suspensions.set(key, left);
      else {
        this.suspensions.delete(key);
        for (const queue of this.queuesOf(charge)) queue.resume();
      }
    }
  }

  /** Retries: units of a counter may have become free. */
  wake(counter: Counter): void {
    for (const queue of this.queuesOf(counter)) queue.wake();
    this.levels.wake(counter);
  }

  /** Reserves the units of all waiters anew: the counter was reset. */
  restart(counter: Counter): void {
    for (const queue of this.queuesOf(counter)) queue.restart();
    this.levels.wake(counter);
  }

  /** Rejects all waiters, and refunds their units before the store closes. */
  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.queues.values()].map((queue) => queue.close(closedError())));
    await this.levels.close(closedError());
    await this.onApplicationShutdown();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.pendingRefunds);
  }

  /** Those of all priorities, or of all tenants that share the counter. Mostly nobody waits for a counter. */
  private queuesOf({ limit, identity }: Counter): readonly WaitQueue[] {
    if (this.queues.size === 0) return NO_QUEUES;
    if (limit.hasTenants) {
      const id = `${lineageId(limit, identity)}\t`;
      return [...this.queues].flatMap(([key, queue]) => (key.startsWith(id) ? queue : []));
    }
    const asked = limit.keepsUnits || limit.adapts ? PRIORITIES : [undefined];
    const ids = asked.map((priority) => queueId(limit.meet({ priority }), identity, priority));
    return [...new Set(ids)].flatMap((id) => this.queues.get(id) ?? []);
  }

  private join(waiter: Waiter, identity: string): void {
    const limit = waiter.limit();
    const key = queueId(limit, identity, waiter.priority);
    let queue = this.queues.get(key);
    if (queue === undefined) {
      const created = new WaitQueue(waiter, {
        identity,
        store: this.store,
        refund: (refunds) => this.refundInBackground(refunds),
        // An old queue may tell it again after the next one has begun.
        onEmpty: () => this.queues.get(key) === created && this.queues.delete(key),
        count: this.count,
      });
      if (this.suspensions.has(lineageId(limit, identity))) created.suspend();
      this.queues.set(key, (queue = created));
    }
    queue.join(waiter);
  }

  private onLimitChanged(rule: Rule): void {
    const { lineage } = rule.limit;
    for (const [key, queue] of this.queues) if (key.startsWith(lineage)) queue.onLimitChanged();
  }

  private onListsChanged(): void {
    const { lists, queues } = this;
    if (lists === undefined || lists.isEmpty) return;
    for (const queue of queues.values()) queue.onListsChanged(lists);
    this.levels.wakeAll();
  }

  /** A failed refund is not repeated: the units come back by themselves in time. */
  private refundInBackground(refunds: readonly Refund[]): void {
    const refunded = this.store
      .refund(refunds)
      .then(
        () => this.wake(refunds[0]!),
        () => undefined,
      )
      .finally(() => this.pendingRefunds.delete(refunded));
    this.pendingRefunds.add(refunded);
  }

  /** Calls do not wait while the app shuts down. */
  private async reserveNow(counter: Counter, { cost, priority, signal }: WaitOptions): Promise<StoreDecision> {
    signal?.throwIfAborted();
    if (counter.limit.off) return openDecision(counter.limit);
    const answer = await this.store.reserve({ ...counter, cost, priority, maxWaitMs: 0 });
    if (!answer.allowed) throw closedError();
    return answer;
  }
}

/** The limit in force now, as one waiter meets it: the same one until the rule has another. */
function limitOf(rule: Rule, identity: string, { priority, tenant, anchor }: WaitOptions): () => CompiledLimit {
  let whole: CompiledLimit | undefined;
  let met: CompiledLimit;
  return () => {
    const current = rule.limitFor(identity);
    if (current === whole) return met;
    whole = current;
    met = current.meet({ priority, tenant, anchor });
    return met;
  };
}

/** Who may take a kept part, or what an adaptive limit lets in, does not wait behind those who may not; no tenant behind another one. */
function queueId(limit: CompiledLimit, identity: string, asked: Priority = DEFAULT_PRIORITY): string {
  const own = limit.tenant?.id ?? (limit.adapts ? asked : limit.priority);
  return lineageId(limit, identity) + (own === undefined ? '' : `\t${own}`);
}

function closedError(): RateLimitStoreError {
  return new RateLimitStoreError(messages.closed());
}
