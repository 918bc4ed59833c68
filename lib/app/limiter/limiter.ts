import type { WindowCount } from '../../engine/algorithms/algorithm.js';
import { algorithms } from '../../engine/algorithms/index.js';
import type { Duration } from '../../engine/options/values.js';
import { MOST_UNITS } from '../../engine/algorithms/scale.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { assertHistory, toMs } from '../../engine/limits/arguments.js';
import type { RegionHolding } from '../../engine/limits/region-holding.js';
import type { ConsumeOptions, CorrectionOptions, WithinOptions } from '../../engine/limits/consume-options.js';
import {
  exportOf,
  type KeyUsage,
  type Usage,
  type UsageExportOptions,
  usageOf,
  type UsageRange,
} from '../../storage/features/usage/reading.js';
import { holdingsOf } from '../../storage/features/regions/holdings.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type Counter, withStarts } from '../../engine/limits/counter.js';
import type { Decision } from '../../engine/limits/decision.js';
import type { Rule } from '../rules/rule.js';
import type { Store } from '../../storage/stores/store.js';
import { acquire, hold } from './acquire.js';
import { corrections, namedCounter, ownCounter } from './called-limit.js';
import { consume, consumeSync } from './consume.js';
import { changeCredits, type CreditOptions } from './credits.js';
import type { Lease, LeasedDecision } from './lease.js';
import type { AcquireOptions, ReserveOptions } from './limiter-options.js';
import type { Reservation } from './reservation.js';
import { reserve, settleHeld } from './reserve.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/**
 * One limit, for any code: made by `LimiterService.for` or injected with `@InjectLimiter`. Each key has its own counter; a key is
 * any string that is not empty, such as `user:42`. A wrong key, cost, duration or number of units rejects with
 * `RateLimitArgumentError`, a failing store with `RateLimitStoreError`. A limit in shadow mode counts, but never refuses or
 * delays; `decisions$` reports its refusals.
 */
export class Limiter {
  private bound: Rule | undefined;
  /** @internal The version of it that was last found to be counted in this process. */
  countedHere: CompiledLimit | undefined;

  /** @internal */
  constructor(
    /** The limit's name. */
    readonly name: string,
    private readonly bind: () => Rule,
    /** @internal The store of its counters. */
    readonly store: Store,
    /** @internal The calls of this process that wait for its units. */
    readonly queues: WaitQueues,
  ) {}

  /** @internal */
  get rule(): Rule {
    return (this.bound ??= this.bind());
  }

  /**
   * Takes units if they fit: the number given, or the `cost` of the options; or, with `upTo`, as many as there are, at most that many.
   * The decision then has `taken`. A refusal is a decision, not an error. Allowed decisions of `concurrency` limits have a `lease`.
   */
  consume(key: string, cost?: number | ConsumeOptions): Promise<LeasedDecision> {
    return consume(this, key, cost, false);
  }

  /**
   * Takes units as `consume` does, but returns the decision itself: for hot loops, frames and log lines. Only for limits that are
   * counted in this process: those with `scope: 'instance'`, and all limits of an app without `redis`. Throws
   * `RateLimitArgumentError` for others, and what `consume` rejects with.
   */
  consumeSync(key: string, cost?: number | ConsumeOptions): LeasedDecision {
    return consumeSync(this, key, cost);
  }

  /** Returns the decision that `consume` would make; takes and writes nothing. */
  peek(key: string, cost?: number | ConsumeOptions): Promise<Decision> {
    return consume(this, key, cost, true);
  }

  /**
   * Waits for its turn among the calls of this process for the key, first come, first served, and takes `cost` units. Rejects
   * with `RateLimitTimeoutError` as soon as the wait is known to exceed `timeout`, with the signal's reason, or with
   * `RateLimitWaitersError` if the module's `maxWaiters` calls already wait.
   *
   * @param key the key of the counter
   * @param options the units, and when to stop waiting
   */
  acquire(key: string, options?: AcquireOptions): Promise<LeasedDecision> {
    return acquire(this, key, options);
  }

  /**
   * Reserves `cost` units. With `token-bucket`, `gcra` or `leaky-bucket` they may be for a time in the future: the reservation's
   * `delayMs` is the wait until they may be used. Refused if that wait exceeds `maxWait`, or if `reserveFor` keeps units for
   * others and they are not available now. With a `hold` they are an estimate that counts from now on, until it is settled at
   * what was really used.
   *
   * @param key the key of the counter
   * @param options the units, and the longest wait for them
   */
  reserve(key: string, options?: ReserveOptions): Promise<Reservation> {
    return reserve(this, key, options);
  }

  /**
   * Settles a reservation of a limit with a `hold`, from any process, as `Reservation.settle` does: only the first call has an
   * effect.
   *
   * @param key the key of the counter
   * @param id the reservation's `id`
   * @param actual units: a whole number >= 0; 0 gives all back
   * @param options the keys of the limits that this one is within; only its own units are settled, not theirs
   */
  settle(key: string, id: string, actual: number, options?: WithinOptions): Promise<void> {
    return settleHeld(this, key, id, actual, options);
  }

  /**
   * Holds `cost` units of a `concurrency` limit while `work` runs, and releases them when it ends or fails; the lease of long
   * work is renewed. Waits for its turn up to `timeout`, and rejects with `RateLimitTimeoutError` after that, or with the
   * signal's reason.
   *
   * @param key the key of the counter
   * @param work a function of the lease
   * @param options the units, and when to stop waiting; the default `timeout` is 0: now or not at all
   * @returns the result of `work`
   */
  hold<T>(key: string, work: (lease: Lease) => T | Promise<T>, options: AcquireOptions = {}): Promise<T> {
    return hold(this, key, work, options);
  }

  /**
   * Gives consumed `units` back, at most those that are counted. For a limit within others, at all levels.
   *
   * @param key the key of the counter
   * @param units units: a whole number >= 1
   * @param options the tenant whose units they were, if tenants share them; the keys of the limits that this one is within;
   * whether it must reach the store
   */
  async refund(key: string, units: number, options?: CorrectionOptions): Promise<void> {
    const refunds = corrections(this, key, units, options, true);
    for (const refund of refunds) this.refuseHeld(refund, 'refunded');
    await Promise.all(refunds.map((refund) => this.queues.refund(refund)));
  }

  /**
   * Adds prepaid units. They are used once the window is used up, and do not expire with it. Of all credits with the same `id`,
   * such as that of a payment, only the first counts. An id is remembered for 35 days, so a message that is sent again counts
   * once.
   *
   * @param key the key of the counter
   * @param units a whole number >= 1
   * @param options the `id`
   * @returns the credits left, including these
   */
  credit(key: string, units: number, options: CreditOptions = {}): Promise<number> {
    return changeCredits(this, key, units, options, 1);
  }

  /**
   * Takes prepaid units back: the given number, or as many as are left; by default all.
   *
   * @param key the key of the counter
   * @param units a whole number >= 1
   * @param options the `id`; a credit with the same `id` no longer counts
   * @returns the credits left
   */
  withdraw(key: string, units: number = MOST_UNITS, options: CreditOptions = {}): Promise<number> {
    return changeCredits(this, key, units, options, -1);
  }

  /**
   * Charges `units` whether they fit or not. A debt, of at most one quota, is paid off before anything is allowed. For a limit
   * within others, at all levels.
   *
   * @param key the key of the counter
   * @param units units: a whole number >= 1
   * @param options the tenant to charge, if tenants share units; the keys of the limits that this one is within; whether it must
   * reach the store
   */
  async penalize(key: string, units: number, options?: CorrectionOptions): Promise<void> {
    const charges = corrections(this, key, units, options);
    for (const charge of charges) this.refuseHeld(charge, 'penalized');
    await Promise.all(charges.map((charge) => this.store.penalize(charge)));
  }

  /**
   * Refuses a key for a time from now: milliseconds or a duration such as `'15m'`, at most 1 year. Counted units stay, and expire
   * as usual. It replaces a block that is not over yet. It is not an offence, and keeps earlier offences.
   */
  async block(key: string, duration: Duration, options?: WithinOptions): Promise<void> {
    const counter = ownCounter(this, key, options, true);
    const ms = toMs('duration', duration);
    if (ms === 0)
      throw new RateLimitArgumentError(messages.wrongDuration('duration', duration), {
        code: 'SLUICE_INVALID_DURATION',
      });
    await Promise.all(withStarts(counter).map((each) => this.store.block(each, ms)));
  }

  /**
   * Ends a block, and clears offences. After a block of `blockFor` the key starts anew; after one of `block` its counted units
   * stay. Resolves to whether there was a block or an offence; to `true` as well if a store of your own does not say.
   */
  async unblock(key: string, options?: WithinOptions): Promise<boolean> {
    const counter = ownCounter(this, key, options, true);
    const were = await Promise.all(withStarts(counter).map((each) => this.store.block(each, 0)));
    this.queues.wake(counter);
    return were.some((wasThere) => wasThere !== false);
  }

  /**
   * Clears everything about a key: counted units, held units, a block and offences; but not its credits, which `withdraw` takes
   * back. The limits that this one is within keep theirs. Resolves to whether there was anything to clear; to `true` as well if a
   * store of your own does not say.
   */
  async reset(key: string, options?: WithinOptions): Promise<boolean> {
    const counter = ownCounter(this, key, options, true);
    const wasThere = await this.store.reset(withStarts(counter));
    this.queues.restart(counter);
    return wasThere !== false;
  }

  /**
   * Returns the newest `windows` of a `calendar-window`, or slices of a `sliding-window`, that the store still has: the newest
   * first, by default all.
   */
  async history(key: string, windows?: number, options?: WithinOptions): Promise<WindowCount[]> {
    const counter = ownCounter(this, key, options, true);
    if (windows !== undefined) assertHistory(windows);
    if (counter.limit.algorithm.history === undefined) {
      throw new RateLimitArgumentError(messages.noHistory(this.name, algorithms.withAny('history')), {
        code: 'SLUICE_UNSUPPORTED_CALL',
      });
    }
    const all = await this.store.history(counter);
    return all.slice(0, windows);
  }

  /**
   * Returns the units that a key was charged and not given back, by day, for a limit with the option `usage`: the days that
   * overlap the time from `from` on and before `to`, and are kept. Rejects with `RateLimitArgumentError` for a limit without that
   * option.
   *
   * @param key the key of the counter
   * @param range the days; by default all that are kept
   */
  async usage(key: string, range?: UsageRange): Promise<Usage> {
    return usageOf(this.store, namedCounter(this, key), range);
  }

  /**
   * Reads the units of all keys that were charged any, by day, for a limit with the option `usage`: key by key in no particular
   * order, the days of each from the oldest on. It reads a page at a time, so memory use is bounded. Its first step rejects with
   * `RateLimitArgumentError` for a limit without that option, any step with `RateLimitStoreError`.
   *
   * @param options the days, by default all that are kept, and the size of a page
   */
  exportUsage(options?: UsageExportOptions): AsyncIterableIterator<KeyUsage> {
    const { rule } = this;
    return exportOf(this.store, rule.limit, (identity) => rule.limitFor(identity), options);
  }

  /**
   * What each region holds of a key, for a limit with `scope: 'world'`, as its home knows it: units that were granted to the region, and
   * may have been used since. Rejects with `RateLimitArgumentError` for a limit of one region, with `RateLimitStoreError` if the home does
   * not answer.
   *
   * @param key the key of the counter
   */
  async regions(key: string): Promise<RegionHolding[]> {
    return holdingsOf(this.store, namedCounter(this, key));
  }

  private refuseHeld({ limit: { algorithm } }: Counter, what: string): void {
    if (algorithm.leases === undefined) return;
    throw new RateLimitArgumentError(messages.onlyHeld(this.name, algorithm.name, what), {
      code: 'SLUICE_UNSUPPORTED_CALL',
    });
  }
}
