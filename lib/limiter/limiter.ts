import type { WindowCount } from '../algorithms/algorithm.js';
import { algorithms } from '../algorithms/index.js';
import { type Duration, MAX_INTERVAL_MS } from '../algorithms/options.js';
import { MOST_UNITS } from '../algorithms/plan-terms.js';
import {
  assertActual,
  assertCredits,
  assertHistory,
  assertKey,
  assertSignal,
  assertUnits,
  toMs,
} from '../limits/arguments.js';
import {
  type Asked,
  askedOf,
  type ConsumeOptions,
  type OfTenant,
  readCreditId,
  readWhose,
  readWithinOption,
  type WithinOptions,
} from '../limits/consume-options.js';
import { openDecision, refundOf, refundsOf, toCallerDecision } from '../stores/store-decision.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { holdMessages } from '../errors/hold-messages.js';
import { messages } from '../errors/messages.js';
import { withinMessages } from '../errors/within-messages.js';
import { decidedEnforced, decideEnforced } from './enforced-entries.js';
import { LevelAnswer, levelDecision, refuseHeldEntries } from './level-answer.js';
import { levelCounter, levelEntries, levelsOf } from './levels.js';
import { planMessages } from '../errors/plan-messages.js';
import { shareMessages } from '../errors/share-messages.js';
import { CallerAnswer } from './caller-answer.js';
import { Lease, type LeasedDecision, withLease } from './lease.js';
import {
  ACQUIRE_OPTIONS,
  type AcquireOptions,
  type CreditOptions,
  RESERVE_OPTIONS,
  type ReserveOptions,
} from './limiter-options.js';
import type { Rule } from '../rules/rule.js';
import { Reservation } from './reservation.js';
import { readReservationId } from './reservation-id.js';
import { type CheckEntry, type Counter, counterId, withStarts } from '../limits/counter.js';
import { decide, decided } from '../stores/decide.js';
import type { Decision } from '../limits/decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { exportOf, type KeyUsage, type Usage, type UsageExportOptions, usageOf, type UsageRange } from './usage.js';
import type { WaitQueues } from './wait-queues.js';

/**
 * One limit, for any code: made by `LimiterService.for` or injected with `@InjectLimiter`. Each key has a counter of its own;
 * a key is any string that is not empty, such as `user:42`. A wrong key, cost, duration or number of units rejects with
 * `RateLimitArgumentError`, a failing store with `RateLimitStoreError`. A limit in shadow mode counts, but never refuses or
 * delays; `decisions$` tells its refusals.
 */
export class Limiter {
  private bound: Rule | undefined;

  /** @internal */
  constructor(
    /** The limit's name. */
    readonly name: string,
    private readonly bind: () => Rule,
    /** @internal Where its counters live. */
    readonly store: Store,
    /** @internal Those who wait for its units in this process. */
    readonly queues: WaitQueues,
  ) {}

  /** @internal */
  get rule(): Rule {
    return (this.bound ??= this.bind());
  }

  /**
   * Takes units if they fit: so many, or those of the options. A refusal is a decision, not an error. Allowed decisions of
   * `concurrency` have a `lease`.
   */
  consume(key: string, cost?: number | ConsumeOptions): Promise<LeasedDecision> {
    return this.decide(key, cost, false);
  }

  /** Returns the decision that `consume` would make; takes and writes nothing. */
  peek(key: string, cost?: number | ConsumeOptions): Promise<Decision> {
    return this.decide(key, cost, true);
  }

  /**
   * Waits for its turn among the calls of this process for the key, first come, first served, and takes `cost` units.
   * Rejects with `RateLimitTimeoutError`, as soon as the wait is known to be longer than `timeout`, or with the signal's reason.
   *
   * @param key the key of the counter
   * @param options the units, and the end of the wait
   */
  async acquire(key: string, options?: AcquireOptions): Promise<LeasedDecision> {
    const asked = askedOf(options, this.rule, ACQUIRE_OPTIONS);
    if (this.isNested(asked.within)) return this.acquireLevels(key, asked, options);
    const counter = this.counter(key, asked);
    const units = asked.cost;
    const answer = await this.wait(counter, asked, options);
    // The delay is over.
    return this.decision({ ...answer, delayMs: 0 }, counter, units);
  }

  /**
   * Reserves `cost` units. Of a `token-bucket`, `gcra` or `leaky-bucket` if need be for a time in the future: the
   * reservation's `delayMs` is the wait until they may be used. Refused if that is longer than `maxWait`, or if `reserveFor` keeps
   * something for others and they are not there now. Of a limit with a `hold` at an estimate: they count from now on, until they are
   * settled at what was really used.
   *
   * @param key the key of the counter
   * @param options the units, and the longest wait for them
   */
  async reserve(key: string, options?: ReserveOptions): Promise<Reservation> {
    const asked = askedOf(options, this.rule, RESERVE_OPTIONS);
    if (this.isNested(asked.within)) return this.reserveLevels(key, asked, options?.maxWait);
    const counter = this.counter(key, asked);
    const units = asked.cost;
    const maxWaitMs = toMs('maxWait', options?.maxWait ?? '1y');
    const { algorithm, hold } = counter.limit;
    if (hold !== undefined) return this.reserveHeld({ ...counter, cost: units });
    if (algorithm.holds !== undefined) throw new RateLimitArgumentError(holdMessages.noHold(this.name, algorithm.name));
    if (counter.limit.isShared) throw new RateLimitArgumentError(shareMessages.notReservable(this.name));
    if (algorithm.reservation === undefined && algorithm.queue === undefined) {
      throw new RateLimitArgumentError(
        messages.notReservable(this.name, algorithm.name, algorithms.withAny('reservation', 'queue', 'holds')),
      );
    }
    if (counter.limit.off) return new Reservation(openDecision(counter.limit), undefined, this.store);
    const answer = await this.store.reserve({ ...counter, cost: units, maxWaitMs });
    const taken = answer.allowed ? refundOf({ ...counter, units }, answer) : undefined;
    return new Reservation(toCallerDecision(answer, counter.limit), taken, this.store);
  }

  /**
   * Settles a reservation of a limit with a `hold`, from whichever process: as `Reservation.settle` does, so once.
   *
   * @param key the key of the counter
   * @param id the reservation's
   * @param actual units: a whole number >= 0; 0 gives all back
   * @param options the keys of what the limit is within; its own units are settled, not theirs
   */
  async settle(key: string, id: string, actual: number, options?: WithinOptions): Promise<void> {
    const counter = this.ownCounter(key, options);
    const { algorithm, hold } = counter.limit;
    const held = readReservationId(id);
    assertActual(actual);
    if (hold === undefined) throw new RateLimitArgumentError(holdMessages.noHold(this.name, algorithm.name));
    await this.store.refund([{ ...counter, ...held, actual }]);
    this.queues.wake(counter);
  }

  /**
   * Holds `cost` units of a `concurrency` limit while `work` runs, and releases them when it ends or fails; the lease of long
   * work is renewed. Waits for its turn up to `timeout`, else rejects with `RateLimitTimeoutError`, or with the signal's reason.
   *
   * @param key the key of the counter
   * @param work a function of the lease
   * @param options the units, and the end of the wait; the default `timeout` is 0: now or not at all
   * @returns the result of `work`
   */
  async hold<T>(key: string, work: (lease: Lease) => T | Promise<T>, options: AcquireOptions = {}): Promise<T> {
    const asked = askedOf(options, this.rule, ACQUIRE_OPTIONS);
    const isNested = this.isNested(asked.within);
    const counter = isNested ? levelCounter(this.rule, key, asked.within) : this.counter(key, asked);
    const units = asked.cost;
    const { algorithm } = counter.limit;
    if (typeof work !== 'function') throw new RateLimitArgumentError(messages.wrongWork(work));
    if (algorithm.holding === undefined) {
      throw new RateLimitArgumentError(messages.notHeld(this.name, algorithm.name, algorithms.withAny('holding')));
    }
    const lease = isNested
      ? ((await this.acquireLevels(key, asked, { timeout: 0, ...options })).lease ??
        new Lease(undefined, this.store, this.queues))
      : await this.leaseOf(counter, units, asked, options);
    lease.keepAlive();
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  }

  /**
   * Gives consumed `units` back; never more than are counted. Of a limit that is within others at all levels.
   *
   * @param key the key of the counter
   * @param units units: a whole number >= 1
   * @param of whose they were, where tenants share them; the keys of what the limit is within
   */
  async refund(key: string, units: number, of?: OfTenant & WithinOptions): Promise<void> {
    const counters = this.levelCounters(key, of);
    assertUnits(units);
    for (const counter of counters) this.refuseHeld(counter, 'refunded');
    await Promise.all(counters.map((counter) => this.queues.refund({ ...counter, units })));
  }

  /**
   * Adds prepaid units, which are taken once the window is used up, and do not lapse with it. Of all credits of one `id`, such as
   * that of a payment, only the first counts: for 35 days, so that a message that is sent again counts once.
   *
   * @param key the key of the counter
   * @param units a whole number >= 1
   * @param options the `id`
   * @returns how many are left, with these
   */
  credit(key: string, units: number, options: CreditOptions = {}): Promise<number> {
    return this.changeCredits(key, units, options);
  }

  /**
   * Takes prepaid units back: so many, or what is left of them; all by default.
   *
   * @param key the key of the counter
   * @param units a whole number >= 1
   * @param options the `id`, of which none that is a credit's counts again
   * @returns how many are left
   */
  withdraw(key: string, units: number = MOST_UNITS, options: CreditOptions = {}): Promise<number> {
    return this.changeCredits(key, units, options, -1);
  }

  /**
   * Charges `units` whether they fit or not. A debt, of at most one quota, is paid off before anything is allowed. Of a limit that is
   * within others at all levels.
   *
   * @param key the key of the counter
   * @param units units: a whole number >= 1
   * @param of whom they are charged to, where tenants share them; the keys of what the limit is within
   */
  async penalize(key: string, units: number, of?: OfTenant & WithinOptions): Promise<void> {
    const counters = this.levelCounters(key, of);
    assertUnits(units);
    for (const counter of counters) this.refuseHeld(counter, 'penalized');
    await Promise.all(counters.map((counter) => this.store.penalize({ ...counter, units })));
  }

  /**
   * Refuses a key for a time from now: milliseconds or a duration such as `'15m'`, at most 1 year. Counted units stay, and
   * expire meanwhile. A block that is not over yet is replaced. It is no offence, and keeps those that there are.
   */
  async block(key: string, duration: Duration, options?: WithinOptions): Promise<void> {
    const counter = this.ownCounter(key, options);
    const ms = toMs('duration', duration);
    if (ms === 0) throw new RateLimitArgumentError(messages.wrongDuration('duration', duration));
    await Promise.all(withStarts(counter).map((each) => this.store.block(each, ms)));
  }

  /**
   * Ends a block, and forgets offences. After a block of `blockFor` the key begins anew; after one of `block` its counted units
   * stay.
   */
  async unblock(key: string, options?: WithinOptions): Promise<void> {
    const counter = this.ownCounter(key, options);
    await Promise.all(withStarts(counter).map((each) => this.store.block(each, 0)));
    this.queues.wake(counter);
  }

  /**
   * Forgets all that a key has: counted units, held units, a block, and offences; but not its credits, which `withdraw` takes back.
   * What it is within keeps its own.
   */
  async reset(key: string, options?: WithinOptions): Promise<void> {
    const counter = this.ownCounter(key, options);
    await this.store.reset(withStarts(counter));
    this.queues.restart(counter);
  }

  /**
   * Returns the newest `windows` of a `calendar-window`, or slices of a `sliding-window`, that the store still has: the newest
   * first, all by default.
   */
  async history(key: string, windows?: number, options?: WithinOptions): Promise<WindowCount[]> {
    const counter = this.ownCounter(key, options);
    if (windows !== undefined) assertHistory(windows);
    if (counter.limit.algorithm.history === undefined) {
      throw new RateLimitArgumentError(messages.noHistory(this.name, algorithms.withAny('history')));
    }
    const all = await this.store.history(counter);
    return all.slice(0, windows);
  }

  /**
   * Returns the units that a key was charged and not given back, by the days of a limit with the option `usage`: those that overlap
   * the time from `from` on and before `to`, and are kept. Rejects with `RateLimitArgumentError` for a limit without that option.
   *
   * @param key the key of the counter
   * @param range the days; all that are kept by default
   */
  async usage(key: string, range?: UsageRange): Promise<Usage> {
    return usageOf(this.store, this.counter(key), range);
  }

  /**
   * Reads the units of all keys that were charged any, by days, of a limit with the option `usage`: key by key, in no order, the days of
   * each from the oldest on. It asks the store for a page at a time, and needs no memory for the rest. Its first step rejects with
   * `RateLimitArgumentError` for a limit without that option, any step with `RateLimitStoreError`.
   *
   * @param options the days, all that are kept by default, and the size of a page
   */
  exportUsage(options?: UsageExportOptions): AsyncIterableIterator<KeyUsage> {
    const { rule } = this;
    return exportOf(this.store, rule.limit, (identity) => rule.limitFor(identity), options);
  }

  private decide(key: string, given: number | ConsumeOptions | undefined, peek: boolean): Promise<LeasedDecision> {
    try {
      const { rule } = this;
      assertKey(key);
      const asked = askedOf(given, rule);
      const { cost, priority } = asked;
      if (this.isNested(asked.within)) return this.decideLevels(key, asked, peek);
      const limit = rule.limitForCall(key, asked, peek).forPriority(priority);
      const entry = { limit, identity: key, cost, priority };
      const answer = new CallerAnswer(entry, peek, this.store, this.queues);
      if (limit.off) answer.decided([openDecision(limit)]);
      else decide(this.store, { entries: [entry], peek }, answer);
      return answer.promise();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Whether its limit is within others, so that a call says which. */
  private isNested(within: unknown): boolean {
    return within !== undefined || this.rule.isNested;
  }

  private decideLevels(key: string, asked: Asked, peek: boolean): Promise<LeasedDecision> {
    const entries = levelEntries(levelsOf(this.rule, key, asked.within), asked);
    const answer = new LevelAnswer(entries, peek, this.store, this.queues);
    decideEnforced(this.store, { entries, peek }, answer);
    return answer.promise();
  }

  /** Waits for units of all levels. Shadow limits do not wait. */
  private async acquireLevels(key: string, asked: Asked, options: AcquireOptions = {}): Promise<LeasedDecision> {
    const { timeout, signal } = options;
    const timeoutMs = timeout === undefined ? Infinity : toMs('timeout', timeout);
    assertSignal(signal);
    const entriesNow = () => levelEntries(levelsOf(this.rule, key, asked.within), asked);
    const entries = entriesNow();
    const { cost, priority } = asked;
    const id = counterId(entries[0]!.limit, entries[0]!.identity);
    const answers = await this.queues.waitForLevels(id, entriesNow, { cost, priority, timeoutMs, signal });
    return levelDecision(
      answers.map((answer) => ({ ...answer, delayMs: 0 })),
      entries,
      this.store,
      this.queues,
    );
  }

  /** Reserves what fits now of all levels. */
  private async reserveLevels(key: string, asked: Asked, maxWait: unknown): Promise<Reservation> {
    const entries = levelEntries(levelsOf(this.rule, key, asked.within), asked);
    if (maxWait !== undefined) throw new RateLimitArgumentError(withinMessages.noFutureUnits(this.name));
    refuseHeldEntries(entries);
    const answers = await decidedEnforced(this.store, { entries, hold: true, refundable: true });
    const decision = levelDecision(answers, entries, this.store, this.queues);
    const taken = decision.allowed ? refundsOf(entries, answers) : undefined;
    return new Reservation(decision, taken, this.store, this.queues);
  }

  /** The counter of the limit itself, for what is done to it alone. */
  private ownCounter(key: string, options: unknown): Counter {
    const within = readWithinOption(options);
    return this.isNested(within) ? levelCounter(this.rule, key, within) : this.counter(key);
  }

  /** The counters of all levels, as a tenant meets them if one is named. */
  private levelCounters(key: string, of: (OfTenant & WithinOptions) | undefined): readonly Counter[] {
    assertKey(key);
    const { share, within } = readWhose(of);
    if (!this.isNested(within)) return [this.counterOf(key, share)];
    return levelsOf(this.rule, key, within).map(({ rule, identity }) => ({ limit: rule.limitFor(identity), identity }));
  }

  private async leaseOf(counter: Counter, units: number, asked: Asked, options: AcquireOptions): Promise<Lease> {
    const { allowed, ticket, source, candidate } = await this.wait(counter, asked, { timeout: 0, ...options });
    const held = allowed && ticket !== undefined ? { ...counter, units, ticket, source, candidate } : undefined;
    return new Lease(held, this.store, this.queues);
  }

  private async changeCredits(key: string, units: number, options: CreditOptions, sign = 1): Promise<number> {
    const counter = this.counter(key);
    assertCredits(units);
    const id = readCreditId(options);
    if (!counter.limit.takesCredits) throw new RateLimitArgumentError(planMessages.noCredits(this.name));
    if (this.store.credit === undefined) throw new RateLimitArgumentError(planMessages.noCreditStore(this.name));
    const left = await this.store.credit({ ...counter, units: sign * units, id });
    this.queues.wake(counter);
    return left;
  }

  /** Reserves units that count at once, and are held until they are settled. */
  private async reserveHeld(entry: CheckEntry): Promise<Reservation> {
    const { limit, identity, cost: units } = entry;
    if (limit.off) return new Reservation(openDecision(limit), undefined, this.store);
    const [answer] = await decided(this.store, { entries: [entry], hold: true, refundable: true });
    const taken = answer!.allowed ? refundOf({ limit, identity, units }, answer!) : undefined;
    return new Reservation(toCallerDecision(answer!, limit), taken, this.store, this.queues);
  }

  /** Waits for units. A shadow limit does not wait: it decides at once whether they come in time. */
  private async wait(counter: Counter, asked: Asked, { timeout, signal }: AcquireOptions = {}): Promise<StoreDecision> {
    const timeoutMs = timeout === undefined ? Infinity : toMs('timeout', timeout);
    assertSignal(signal);
    if (counter.limit.shadow) {
      signal?.throwIfAborted();
      if (counter.limit.off) return openDecision(counter.limit);
      const { cost, priority } = asked;
      return this.store.reserve({ ...counter, cost, priority, maxWaitMs: Math.min(timeoutMs, MAX_INTERVAL_MS) });
    }
    // Whose units it waits for is said once: a function of weights may have another answer later, or fail.
    const { identity, limit } = counter;
    const { cost, priority, anchor } = asked;
    return this.queues.wait(this.rule, identity, { cost, priority, anchor, tenant: limit.tenant, timeoutMs, signal });
  }

  /** Makes the caller's decision, with a lease if units are held. */
  private decision(answer: StoreDecision, counter: Counter, units: number): LeasedDecision {
    return withLease(toCallerDecision(answer, counter.limit), answer, { ...counter, units }, this.store, this.queues);
  }

  /** The counter of a key, as calls of a priority, or for a tenant, meet it; else all of it. */
  private counter(key: string, asked?: Asked): Counter {
    assertKey(key);
    const { rule } = this;
    if (asked === undefined) return { limit: rule.limitFor(key), identity: key };
    return { limit: rule.limitForCall(key, asked).forPriority(asked.priority), identity: key };
  }

  /** The counter of a key, as a tenant meets it if one is named. */
  private counterOf(key: string, tenant: string | undefined): Counter {
    return tenant === undefined ? this.counter(key) : { limit: this.rule.limitForTenant(key, tenant), identity: key };
  }

  private refuseHeld({ limit: { algorithm } }: Counter, what: string): void {
    if (algorithm.holding === undefined) return;
    throw new RateLimitArgumentError(messages.onlyHeld(this.name, algorithm.name, what));
  }
}
