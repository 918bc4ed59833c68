import { Inject, Injectable, type OnApplicationShutdown, type OnModuleDestroy, Optional } from '@nestjs/common';
import type { RateLimitSettings } from '../config/settings.js';
import { RATE_LIMIT_LISTS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../config/tokens.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { type CheckEntry, type Counter, lineageId } from '../../engine/limits/counter.js';
import { DEFAULT_PRIORITY } from '../../engine/limits/arguments.js';
import { Lists } from '../overrides/lists/lists.js';
import type { Rule } from '../rules/rule.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { Charge, Refund } from '../../storage/stores/store.js';
import { KeptLeases } from './kept-leases.js';
import { QueuesByCounter } from './queues-by-counter.js';
import { type Turn, TurnAnswer } from './turn.js';
import { type SourceOf, TurnQueue, type TurnQueueContext } from './turn-queue.js';
import { MAX_INTERVAL_MS } from '../../engine/options/values.js';
import { UnitsAhead } from './units-ahead.js';
import { UnitsNow } from './units-now.js';
import { WaitingCall, type WaitOptions } from './waiting-call.js';
import { WaitingCount } from './waiting-count.js';
import { RateLimitTimeoutError } from './waiting-errors.js';

type WaitedRule = Pick<Rule, 'limit' | 'onChange'>;

/** The limits that a call waits for, and its request to them. */
export interface WaitRequest {
  readonly rules: readonly WaitedRule[];
  /** Returns the request under the current limits, which is always for the same counters. */
  readonly entries: () => readonly CheckEntry[];
  /** True if units may be taken in advance; for a single limit only. */
  readonly mayReserve?: boolean;
}

/** The waiting calls of this process: one queue per set of counters. */
@Injectable()
export class WaitQueues implements OnModuleDestroy, OnApplicationShutdown {
  /** The leases that are renewed while work continues. */
  readonly kept = new KeptLeases();
  /** Queues outlive changes of a rate, even those that restart counters. */
  private readonly queues = new QueuesByCounter();
  private readonly pendingRefunds = new Set<Promise<void>>();
  /** The rules whose changes are reported to the queues. */
  private readonly subscribed = new WeakSet<WaitedRule>();
  /** The number of refunds, per counter, that are currently removing units from the end of its queue. */
  private readonly suspensions = new Map<string, number>();
  private readonly count: WaitingCount;
  private readonly context: TurnQueueContext;
  private closed = false;

  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Layer,
    @Optional() @Inject(RATE_LIMIT_LISTS) private readonly lists?: Lists,
    @Optional() @Inject(RATE_LIMIT_SETTINGS) settings?: Pick<RateLimitSettings, 'maxWaiters'>,
  ) {
    this.count = new WaitingCount(settings?.maxWaiters ?? Infinity);
    const onEmpty = (queue: TurnQueue): void => this.queues.delete(queue);
    this.context = { count: this.count, giveBack: this.giveBack, onEmpty };
    lists?.onChange(() => this.onListsChanged());
  }

  /** True if the app is shutting down. */
  get isClosed(): boolean {
    return this.closed;
  }

  /**
   * Waits until units of all limits can be used. Rejects with `RateLimitTimeoutError`, the signal's reason or the store's error; with
   * `RateLimitStoreError` when the app shuts down, and with `RateLimitWaitersError` if the module's `maxWaiters` calls already wait.
   */
  wait(request: WaitRequest, options: WaitOptions): Promise<Turn> {
    if (!this.closed) return this.enter(request, options);
    // Calls do not wait while the app shuts down.
    return this.enter(request, { ...options, timeoutMs: 0 }).catch((error: unknown) => {
      throw error instanceof RateLimitTimeoutError ? closedError() : error;
    });
  }

  private enter(request: WaitRequest, options: WaitOptions): Promise<Turn> {
    const { rules, entries, mayReserve = false } = request;
    for (const rule of rules) this.subscribe(rule);
    const { count } = this;
    const asked = entries();
    if (count.isFull && (options.notBefore ?? 0) === 0) {
      return Promise.reject(count.refusalOfAll(asked[0]!.limit.name));
    }
    const key = keyOf(asked, mayReserve);
    const known = this.queues.find(key);
    const answer = known === undefined ? this.askAtOnce(request, options) : undefined;
    if (answer?.goesOnNow === true) return Promise.resolve(answer);
    count.begin();
    const call = new WaitingCall(entries, asked, options, count.end);
    if (call.isSettled) return call.taken;
    const queue = this.queues.find(key) ?? this.makeQueue(key, request, asked);
    if (answer === undefined) queue.join(call);
    else queue.start(call, answer);
    return call.taken;
  }

  /**
   * Requests units for a call that has none before it. Usually they fit, and no queue is needed. `undefined` for calls that others arriving
   * at the same time may precede, or that may be aborted immediately, and while a refund is removing units from the end of a queue.
   */
  private askAtOnce(
    { entries, mayReserve = false }: WaitRequest,
    { timeoutMs, since, signal }: WaitOptions,
  ): TurnAnswer | undefined {
    if (since !== undefined || signal !== undefined || this.suspensions.size > 0) return undefined;
    const answer = new TurnAnswer();
    return mayReserve
      ? answer.reserve(this.store, entries, Math.min(timeoutMs, MAX_INTERVAL_MS))
      : answer.check(this.store, entries);
  }

  /** Refunds consumed units, of any call. */
  async refund(charge: Charge): Promise<void> {
    if (charge.limit.algorithm.queue === undefined) await this.store.refund([charge]);
    else await this.refundFromQueue(charge);
    this.wake(charge);
  }

  /**
   * Removes units from the end of the store's queue. Those of waiting calls are at the end, so they are refunded first and reserved again
   * afterwards.
   */
  private async refundFromQueue(charge: Charge): Promise<void> {
    const counter = lineageId(charge.limit, charge.identity);
    this.suspensions.set(counter, (this.suspensions.get(counter) ?? 0) + 1);
    // The last units first.
    const refunds = [...this.queues.of(counter)]
      .flatMap((queue) => queue.suspend())
      .toSorted((one, other) => other.ticket! - one.ticket!);
    try {
      await this.store.refund([...refunds, charge]);
    } finally {
      const left = this.suspensions.get(counter)! - 1;
      if (left > 0) this.suspensions.set(counter, left);
      else {
        this.suspensions.delete(counter);
        for (const queue of this.queues.of(counter)) queue.resume();
      }
    }
  }

  /** Makes calls that wait for units of a counter retry, because some may have been freed. Usually there are none. */
  wake({ limit, identity }: Counter): void {
    if (this.queues.size === 0) return;
    const counter = lineageId(limit, identity);
    for (const queue of this.queues.of(counter)) queue.wakeFor(counter);
  }

  /** Reserves the units of all waiting calls again after a reset of the counter. */
  restart({ limit, identity }: Counter): void {
    const counter = lineageId(limit, identity);
    for (const queue of this.queues.of(counter)) queue.restartFor(counter);
  }

  /** Rejects all waiting calls, and refunds their units before the store closes. */
  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    const reason = closedError();
    await Promise.all([...this.queues.all].map((queue) => queue.close(reason)));
    await this.onApplicationShutdown();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.pendingRefunds);
  }

  private subscribe(rule: WaitedRule): void {
    if (this.subscribed.has(rule)) return;
    this.subscribed.add(rule);
    rule.onChange(() => {
      for (const queue of this.queues.ofAll(rule.limit.lineage)) queue.onLimitChanged();
    });
  }

  private makeQueue(key: string, { entries, mayReserve }: WaitRequest, asked: readonly CheckEntry[]): TurnQueue {
    const counters = asked.map(({ limit, identity }) => lineageId(limit, identity));
    const queue = new TurnQueue(key, counters, entries, mayReserve === true ? this.ahead : this.now, this.context);
    this.queues.add(queue);
    if (counters.some((counter) => this.suspensions.has(counter))) queue.suspend();
    return queue;
  }

  private onListsChanged(): void {
    const { lists, queues } = this;
    if (lists === undefined || lists.isEmpty) return;
    for (const queue of queues.all) queue.onListsChanged(lists);
  }

  private readonly ahead: SourceOf = (queue, entries) => new UnitsAhead(queue, this.store, this.giveBack, entries);

  private readonly now: SourceOf = (queue) => new UnitsNow(queue, this.store, this.giveBack);

  /** Refunds in the background. A failed refund is not repeated: the units expire on their own. */
  private readonly giveBack = (refunds: readonly Refund[]): void => {
    if (refunds.length === 0) return;
    const refunded = this.store
      .refund(refunds)
      .then(
        () => refunds.forEach((refund) => this.wake(refund)),
        () => undefined,
      )
      .finally(() => this.pendingRefunds.delete(refunded));
    this.pendingRefunds.add(refunded);
  };
}

/** Calls with the same key wait in one queue. */
function keyOf(asked: readonly CheckEntry[], mayReserve: boolean): string {
  return mayReserve ? lineId(asked[0]!) : asked.map(lineId).reduce((ids, id) => `${ids}\n${id.length} ${id}`, '');
}

/**
 * Calls that may use a reserved part, or that an adaptive limit lets in, do not wait behind those that may not. Nor do calls with their own
 * version of the limit wait behind others.
 */
function lineId({ limit, identity, priority = DEFAULT_PRIORITY }: CheckEntry): string {
  const own = limit.line ?? (limit.adapts ? priority : undefined);
  return lineageId(limit, identity) + (own === undefined ? '' : `\t${own}`);
}

function closedError(): RateLimitStoreError {
  return new RateLimitStoreError(messages.closed(), { code: 'SLUICE_SHUTTING_DOWN' });
}
