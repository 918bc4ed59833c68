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
import { type Asked, askedOf, type ConsumeOptions } from '../limits/consume-options.js';
import { openDecision, refundOf, toCallerDecision } from '../stores/store-decision.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { holdMessages } from '../errors/hold-messages.js';
import { messages } from '../errors/messages.js';
import { planMessages } from '../errors/plan-messages.js';
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
import { type CheckEntry, type Counter, withStarts } from '../limits/counter.js';
import { decide, decided } from '../stores/decide.js';
import type { Decision } from '../limits/decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
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
    const counter = this.counter(key, asked);
    const units = asked.cost;
    const answer = await this.wait(counter, asked, options);
    // The delay is over.
    return this.decision({ ...answer, delayMs: 0 }, counter, units);
  }

  /**
   * Reserves `cost` units. Of a `token-bucket`, `gcra` or `leaky-bucket` if need be for a time in the future: the
   * reservation's `delayMs` is the wait until they may be used. Refused if that is longer than `maxWait`. Of a limit with a `hold`
   * at an estimate: they count from now on, until they are settled at what was really used.
   *
   * @param key the key of the counter
   * @param options the units, and the longest wait for them
   */
  async reserve(key: string, options?: ReserveOptions): Promise<Reservation> {
    const asked = askedOf(options, this.rule, RESERVE_OPTIONS);
    const counter = this.counter(key, asked);
    const units = asked.cost;
    const maxWaitMs = toMs('maxWait', options?.maxWait ?? '1y');
    const { algorithm, hold } = counter.limit;
    if (hold !== undefined) return this.reserveHeld({ ...counter, cost: units });
    if (algorithm.holds !== undefined) throw new RateLimitArgumentError(holdMessages.noHold(this.name, algorithm.name));
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
   */
  async settle(key: string, id: string, actual: number): Promise<void> {
    const counter = this.counter(key);
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
    const counter = this.counter(key, asked);
    const units = asked.cost;
    const { algorithm } = counter.limit;
    if (typeof work !== 'function') throw new RateLimitArgumentError(messages.wrongWork(work));
    if (algorithm.holding === undefined) {
      throw new RateLimitArgumentError(messages.notHeld(this.name, algorithm.name, algorithms.withAny('holding')));
    }
    const { allowed, ticket, source, candidate } = await this.wait(counter, asked, { timeout: 0, ...options });
    const held = allowed && ticket !== undefined ? { ...counter, units, ticket, source, candidate } : undefined;
    const lease = new Lease(held, this.store, this.queues).keepAlive();
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  }

  /** Gives consumed `units` back; never more than are counted. */
  async refund(key: string, units: number): Promise<void> {
    const counter = this.counter(key);
    assertUnits(units);
    this.refuseHeld(counter, 'refunded');
    await this.queues.refund({ ...counter, units });
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

  /** Charges `units` whether they fit or not. A debt, of at most one quota, is paid off before anything is allowed. */
  async penalize(key: string, units: number): Promise<void> {
    const counter = this.counter(key);
    assertUnits(units);
    this.refuseHeld(counter, 'penalized');
    await this.store.penalize({ ...counter, units });
  }

  /**
   * Refuses a key for a time from now: milliseconds or a duration such as `'15m'`, at most 1 year. Counted units stay, and
   * expire meanwhile. A block that is not over yet is replaced. It is no offence, and keeps those that there are.
   */
  async block(key: string, duration: Duration): Promise<void> {
    const counter = this.counter(key);
    const ms = toMs('duration', duration);
    if (ms === 0) throw new RateLimitArgumentError(messages.wrongDuration('duration', duration));
    await Promise.all(withStarts(counter).map((each) => this.store.block(each, ms)));
  }

  /**
   * Ends a block, and forgets offences. After a block of `blockFor` the key begins anew; after one of `block` its counted units
   * stay.
   */
  async unblock(key: string): Promise<void> {
    const counter = this.counter(key);
    await Promise.all(withStarts(counter).map((each) => this.store.block(each, 0)));
    this.queues.wake(counter);
  }

  /** Forgets all that a key has: counted units, held units, a block, and offences; but not its credits, which `withdraw` takes back. */
  async reset(key: string): Promise<void> {
    const counter = this.counter(key);
    await this.store.reset(withStarts(counter));
    this.queues.restart(counter);
  }

  /**
   * Returns the newest `windows` of a `calendar-window`, or slices of a `sliding-window`, that the store still has: the newest
   * first, all by default.
   */
  async history(key: string, windows?: number): Promise<WindowCount[]> {
    const counter = this.counter(key);
    if (windows !== undefined) assertHistory(windows);
    if (counter.limit.algorithm.history === undefined) {
      throw new RateLimitArgumentError(messages.noHistory(this.name, algorithms.withAny('history')));
    }
    const all = await this.store.history(counter);
    return all.slice(0, windows);
  }

  private decide(key: string, given: number | ConsumeOptions | undefined, peek: boolean): Promise<LeasedDecision> {
    try {
      const { rule } = this;
      assertKey(key);
      const asked = askedOf(given, rule);
      const { cost, priority } = asked;
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

  private async changeCredits(key: string, units: number, { id }: CreditOptions, sign = 1): Promise<number> {
    const counter = this.counter(key);
    assertCredits(units);
    if (id !== undefined && (typeof id !== 'string' || id === '')) {
      throw new RateLimitArgumentError(planMessages.wrongCreditId(id));
    }
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
    return this.queues.wait(this.rule, counter.identity, { ...asked, timeoutMs, signal });
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

  private refuseHeld({ limit: { algorithm } }: Counter, what: string): void {
    if (algorithm.holding === undefined) return;
    throw new RateLimitArgumentError(messages.onlyHeld(this.name, algorithm.name, what));
  }
}
