import type { RateLimitStoreError } from '../../engine/errors/errors.js';
import { type CheckEntry, type Counter, lineageId } from '../../engine/limits/counter.js';
import { DEFAULT_PRIORITY } from '../../engine/limits/arguments.js';
import type { Lists } from '../overrides/lists/lists.js';
import type { Rule } from '../rules/rule.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { Charge, Refund } from '../../storage/stores/store.js';
import { QueuesByCounter } from './queues-by-counter.js';
import { type Turn, TurnAnswer } from './turn.js';
import { type SourceOf, TurnQueue, type TurnQueueContext } from './turn-queue.js';
import { MAX_INTERVAL_MS } from '../../engine/options/values.js';
import { UnitsAhead } from './units-ahead.js';
import { UnitsNow } from './units-now.js';
import { WaitingCall, type WaitOptions } from './waiting-call.js';
import { WaitingCount } from './waiting-count.js';

type WaitedRule = Pick<Rule, 'limit' | 'onChange'>;

/** The limits that a call waits for, and its request to them. */
export interface WaitRequest {
  readonly rules: readonly WaitedRule[];
  /** Returns the request under the current limits, which is always for the same counters. */
  readonly entries: () => readonly CheckEntry[];
  /** True if units may be taken in advance; for a single limit only. */
  readonly mayReserve?: boolean;
}

/** The queues of calls that wait: one per set of counters. */
export class CallQueues {
  /** Queues outlive changes of a rate, even those that restart counters. */
  private readonly queues = new QueuesByCounter();
  private readonly pendingRefunds = new Set<Promise<void>>();
  /** The rules whose changes are reported to the queues. */
  private readonly subscribed = new WeakSet<WaitedRule>();
  /** The number of refunds, per counter, that are currently removing units from the end of its queue. */
  private readonly suspensions = new Map<string, number>();
  private readonly count: WaitingCount;
  private readonly context: TurnQueueContext;

  constructor(
    private readonly store: Layer,
    private readonly lists?: Lists,
    maxWaiters = Infinity,
  ) {
    this.count = new WaitingCount(maxWaiters);
    const onEmpty = (queue: TurnQueue): void => this.queues.delete(queue);
    this.context = { count: this.count, giveBack: this.giveBack, onEmpty };
    lists?.onChange(() => this.onListsChanged());
  }

  wait(request: WaitRequest, options: WaitOptions): Promise<Turn> {
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

  wake({ limit, identity }: Counter): void {
    if (this.queues.size === 0) return;
    const counter = lineageId(limit, identity);
    for (const queue of this.queues.of(counter)) queue.wakeFor(counter);
  }

  restart({ limit, identity }: Counter): void {
    const counter = lineageId(limit, identity);
    for (const queue of this.queues.of(counter)) queue.restartFor(counter);
  }

  /** Rejects all waiting calls with this reason, and refunds their units. */
  async close(reason: RateLimitStoreError): Promise<void> {
    await Promise.all([...this.queues.all].map((queue) => queue.close(reason)));
  }

  /** Resolves when all refunds that have begun are done. */
  async refunded(): Promise<void> {
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
