import type { WindowCount } from '../../engine/algorithms/algorithm.js';
import type { Duration } from '../../engine/options/values.js';
import { MOST_UNITS } from '../../engine/algorithms/scale.js';
import { argumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { assertHistory, toMs } from '../../engine/limits/arguments.js';
import type { RegionHolding } from '../../engine/limits/key-reports.js';
import type { ConsumeOptions, CorrectionOptions, WithinOptions } from '../../engine/limits/consume-options.js';
import {
  exportOf,
  type KeyUsage,
  type Usage,
  type UsageExportOptions,
  usageOf,
  type UsageRange,
} from '../../storage/features/usage/reading.js';
import { noHistory } from '../../storage/stores/store-decision.js';
import { holdingsOf } from '../../storage/features/regions/limit-regions.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { withStarts } from '../../engine/limits/counter.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { Rule } from '../rules/rule.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import { acquire, type AcquireOptions, hold } from './acquire.js';
import { corrections, namedCounter, ownCounter, refuseHeld } from './called-limit.js';
import { consume, consumeSync } from './consume.js';
import { changeCredits, type CreditOptions } from './credits.js';
import type { Lease, LeasedDecision } from './lease.js';
import type { Reservation } from './reservation.js';
import { reserve, type ReserveOptions, settleHeld } from './reserve.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/**
 * One limit, for use in any code: created with `LimiterService.for` or injected with `@InjectLimiter`. Each key has its own counter; a key
 * is any non-empty string, such as `user:42`. An invalid key, cost, duration or number of units rejects with `RateLimitArgumentError`, a
 * failing store with `RateLimitStoreError`. A limit in shadow mode counts, but never rejects or delays; `decisions$` reports the rejections
 * it would have made.
 */
export class Limiter {
  private bound: Rule | undefined;
  /** @internal The version of the limit that was last found to be counted in this process. */
  countedHere: CompiledLimit | undefined;

  /** @internal */
  constructor(
    /** The limit's name. */
    readonly name: string,
    private readonly bind: () => Rule,
    /** @internal The store of its counters. */
    readonly store: Layer,
    /** @internal The calls of this process that wait for its units. */
    readonly queues: WaitQueues,
  ) {}

  /** @internal */
  get rule(): Rule {
    return (this.bound ??= this.bind());
  }

  /**
   * Takes units if they fit: the given number, or the `cost` of the options. With `upTo`, takes as many as are available, up to that
   * number, and the decision contains `taken`. A rejection is a decision, not an error. Allowed decisions of `concurrency` limits have a
   * `lease`.
   */
  consume(key: string, cost?: number | ConsumeOptions): Promise<LeasedDecision> {
    return consume(this, key, cost, false);
  }

  /**
   * Takes units like `consume`, but returns the decision synchronously: for hot loops, frames and log lines. Only for limits that are
   * counted in this process: those with `scope: 'instance'`, and all limits of an app without `redis`. Throws `RateLimitArgumentError` for
   * other limits, and the errors with which `consume` rejects.
   */
  consumeSync(key: string, cost?: number | ConsumeOptions): LeasedDecision {
    return consumeSync(this, key, cost);
  }

  /** Returns the decision that `consume` would make, without taking or writing anything. */
  peek(key: string, cost?: number | ConsumeOptions): Promise<Decision> {
    return consume(this, key, cost, true);
  }

  /**
   * Waits for its turn among the calls of this process for the key, first come, first served, and takes `cost` units. Rejects with
   * `RateLimitTimeoutError` as soon as the wait is known to exceed `timeout`, with the signal's reason, or with `RateLimitWaitersError` if
   * the module's `maxWaiters` calls already wait.
   *
   * @param key the key of the counter
   * @param options the units, and the end of the wait
   */
  acquire(key: string, options?: AcquireOptions): Promise<LeasedDecision> {
    return acquire(this, key, options);
  }

  /**
   * Reserves `cost` units. With `token-bucket`, `gcra` or `leaky-bucket` the reservation may be for a future time: `delayMs` is the wait
   * until the units can be used. It is rejected if that wait exceeds `maxWait`, or if `reserveFor` reserves units for others and there are
   * no other units now. For a limit with a `hold`, the units are an estimate that counts immediately, until it is settled with the actual
   * number.
   *
   * @param key the key of the counter
   * @param options the units, and the longest wait for them
   */
  reserve(key: string, options?: ReserveOptions): Promise<Reservation> {
    return reserve(this, key, options);
  }

  /**
   * Settles a reservation of a limit with a `hold`, like `Reservation.settle`, but from any process. Only the first call has an effect.
   *
   * @param key the key of the counter
   * @param id the reservation's `id`
   * @param actual units: a whole number >= 0; 0 refunds all of them
   * @param options the keys of the parent limits; only this limit's own units are settled, not theirs
   */
  settle(key: string, id: string, actual: number, options?: WithinOptions): Promise<void> {
    return settleHeld(this, key, id, actual, options);
  }

  /**
   * Holds `cost` units of a `concurrency` limit while `work` runs, and releases them when it ends or fails. The lease is renewed for as
   * long as the work takes. Waits for its turn up to `timeout`, then rejects with `RateLimitTimeoutError`; an abort rejects with the
   * signal's reason.
   *
   * @param key the key of the counter
   * @param work a function of the lease
   * @param options the units, and the end of the wait; the default `timeout` is 0, which doesn't wait
   * @returns the result of `work`
   */
  hold<T>(key: string, work: (lease: Lease) => T | Promise<T>, options: AcquireOptions = {}): Promise<T> {
    return hold(this, key, work, options);
  }

  /**
   * Refunds consumed `units`, at most those that are counted. For a limit with parents, at all levels.
   *
   * @param key the key of the counter
   * @param units units: a whole number >= 1
   * @param options the tenant whose units they were, if tenants share them; the keys of the parent limits; `strict`
   */
  async refund(key: string, units: number, options?: CorrectionOptions): Promise<void> {
    const refunds = corrections(this, key, units, options, true);
    refuseHeld(refunds, 'refunded');
    await Promise.all(refunds.map((refund) => this.queues.refund(refund)));
  }

  /**
   * Adds prepaid units. They are used once the window is used up, and do not expire with it. Of all credits with the same `id`, such as
   * that of a payment, only the first counts. An id is stored for 35 days, so a message that is delivered twice counts once.
   *
   * @param key the key of the counter
   * @param units a whole number >= 1
   * @param options the `id`
   * @returns the remaining credits, including these
   */
  credit(key: string, units: number, options: CreditOptions = {}): Promise<number> {
    return changeCredits(this, key, units, options, 1);
  }

  /**
   * Withdraws prepaid units: the given number, or as many as are left; by default all.
   *
   * @param key the key of the counter
   * @param units a whole number >= 1
   * @param options the `id`; a credit with the same `id` no longer counts
   * @returns the remaining credits
   */
  withdraw(key: string, units: number = MOST_UNITS, options: CreditOptions = {}): Promise<number> {
    return changeCredits(this, key, units, options, -1);
  }

  /**
   * Charges `units` even if they don't fit. The resulting debt, of at most one quota, is paid off before anything is allowed again. For a
   * limit with parents, at all levels.
   *
   * @param key the key of the counter
   * @param units units: a whole number >= 1
   * @param options the tenant to charge, if tenants share units; the keys of the parent limits; `strict`
   */
  async penalize(key: string, units: number, options?: CorrectionOptions): Promise<void> {
    const charges = corrections(this, key, units, options);
    refuseHeld(charges, 'penalized');
    await Promise.all(charges.map((charge) => this.store.penalize(charge)));
  }

  /**
   * Rejects a key for a time from now: milliseconds or a duration such as `'15m'`, at most 1 year. Counted units stay, and expire as usual.
   * Replaces a block that is still running. It isn't an offence, and earlier offences stay.
   */
  async block(key: string, duration: Duration, options?: WithinOptions): Promise<void> {
    const counter = ownCounter(this, key, options, true);
    const ms = toMs('duration', duration);
    if (ms === 0) throw argumentError('SLUICE_INVALID_DURATION', messages.wrongDuration('duration', duration));
    await Promise.all(withStarts(counter).map((each) => this.store.block(each, ms)));
  }

  /**
   * Ends a block, and clears offences. After a block of `blockFor`, the counter starts from zero; after one of `block`, its counted units
   * stay. Resolves to true if there was a block or an offence, or if a custom store does not report that.
   */
  async unblock(key: string, options?: WithinOptions): Promise<boolean> {
    const counter = ownCounter(this, key, options, true);
    const were = await Promise.all(withStarts(counter).map((each) => this.store.block(each, 0)));
    this.queues.wake(counter);
    return were.some((wasThere) => wasThere !== false);
  }

  /**
   * Clears all state of a key: counted units, held units, a block and offences, but not its credits, which `withdraw` removes. The parent
   * limits keep their state. Resolves to true if there was any, or if a custom store does not report that.
   */
  async reset(key: string, options?: WithinOptions): Promise<boolean> {
    const counter = ownCounter(this, key, options, true);
    const wasThere = await this.store.reset(withStarts(counter));
    this.queues.restart(counter);
    return wasThere !== false;
  }

  /**
   * Returns the newest `windows` of a `calendar-window`, or slices of a `sliding-window`, that are still stored: the newest first, by
   * default all.
   */
  async history(key: string, windows?: number, options?: WithinOptions): Promise<WindowCount[]> {
    const counter = ownCounter(this, key, options, true);
    if (windows !== undefined) assertHistory(windows);
    if (counter.limit.algorithm.history === undefined) throw noHistory(this);
    const all = await this.store.history(counter);
    return all.slice(0, windows);
  }

  /**
   * Returns the units that a key was charged, minus refunds, per day, for a limit with the option `usage`: the stored days that overlap the
   * time from `from` until just before `to`. Rejects with `RateLimitArgumentError` for a limit without that option.
   *
   * @param key the key of the counter
   * @param range the days; by default all stored days
   */
  async usage(key: string, range?: UsageRange): Promise<Usage> {
    return usageOf(this.store, namedCounter(this, key), range);
  }

  /**
   * Reads the units of all keys that were charged any, per day, for a limit with the option `usage`: key by key in no particular order,
   * with the oldest day of each key first. It reads a page at a time, so memory use is bounded. The first step rejects with
   * `RateLimitArgumentError` for a limit without that option; any step may reject with `RateLimitStoreError`.
   *
   * @param options the days, by default all stored days, and the size of a page
   */
  exportUsage(options?: UsageExportOptions): AsyncIterableIterator<KeyUsage> {
    const { rule } = this;
    return exportOf(this.store, rule.limit, (identity) => rule.limitFor(identity), options);
  }

  /**
   * Returns the units of a key that were granted to each region, for a limit with `scope: 'world'`, according to its home region. Some of
   * them may have been used since. Rejects with `RateLimitArgumentError` for a limit of one region, and with `RateLimitStoreError` if the
   * home region does not respond.
   *
   * @param key the key of the counter
   */
  async regions(key: string): Promise<RegionHolding[]> {
    return holdingsOf(this.store, namedCounter(this, key));
  }
}
