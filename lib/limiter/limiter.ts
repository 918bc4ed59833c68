import type { WindowCount } from '../algorithms/algorithm.js';
import { algorithms } from '../algorithms/index.js';
import { type Duration, MAX_INTERVAL_MS } from '../algorithms/options.js';
import { assertCost, assertHistory, assertKey, assertSignal, assertUnits, toMs } from '../limits/arguments.js';
import { refundOf, toCallerDecision } from '../stores/store-decision.js';
import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { Lease, type LeasedDecision, withLease } from './lease.js';
import type { Rule } from '../rules/rule.js';
import { Reservation } from './reservation.js';
import type { Counter } from '../limits/counter.js';
import type { Decision } from '../limits/decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
import type { WaitQueues } from './wait-queues.js';

/** What is waited for, and how long. */
export interface AcquireOptions {
  /**
   * Units: a whole number >= 1.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * How long to wait at most: milliseconds or a duration such as `'5s'`, at most 1 year.
   * @default as long as it takes
   */
  timeout?: Duration;
  /** Ends the wait. */
  signal?: AbortSignal;
}

/** What is reserved. */
export interface ReserveOptions {
  /**
   * Units: a whole number >= 1.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * The longest wait: milliseconds or a duration such as `'5s'`, at most 1 year. What would have to wait longer is refused.
   * @default '1y'
   */
  maxWait?: Duration;
}

/**
 * One limit, for any code: made by `LimiterService.for` or injected with `@InjectLimiter`. A key says whom to count, such as
 * `user:42`; it is any string that is not empty. A wrong key, cost, duration or number of units rejects with
 * `RateLimitArgumentError`, a failing store with `RateLimitStoreError`. A limit in shadow mode lets its callers go on at once,
 * whatever it counts; what it would have refused shows in `decisions$`.
 */
export class Limiter {
  private bound: Rule | undefined;

  /** @internal */
  constructor(
    /** The limit's name. */
    readonly name: string,
    private readonly bind: () => Rule,
    private readonly store: Store,
    private readonly room: WaitQueues,
  ) {}

  /** @internal */
  get rule(): Rule {
    return (this.bound ??= this.bind());
  }

  /** Takes `cost` units if they fit. A refusal is a decision, not an error. What a `concurrency` limit allows has a `lease`. */
  async consume(key: string, cost?: number): Promise<LeasedDecision> {
    const counter = this.counter(key);
    const units = this.cost(cost);
    return this.decision(await this.decide(counter, units, false), counter, units);
  }

  /** Says what `consume` would; takes and writes nothing. */
  async peek(key: string, cost?: number): Promise<Decision> {
    const counter = this.counter(key);
    return toCallerDecision(await this.decide(counter, this.cost(cost), true), counter.limit);
  }

  /**
   * Waits until `cost` units are taken: for its turn among all who wait in this process for the key, first come, first
   * served. Rejects with `RateLimitTimeoutError`, at once if the wait would take longer than `timeout`, or with the signal's
   * reason.
   *
   * @param key whom to count
   * @param options the units, and how long to wait for them
   */
  async acquire(key: string, { cost, timeout, signal }: AcquireOptions = {}): Promise<LeasedDecision> {
    const counter = this.counter(key);
    const units = this.cost(cost);
    const answer = await this.wait(counter, units, timeout, signal);
    // What had to be waited for has been.
    return this.decision({ ...answer, delayMs: 0 }, counter, units);
  }

  /**
   * Takes `cost` units of a `token-bucket`, `gcra` or `leaky-bucket`, if need be from the future: the reservation's `delayMs`
   * says how long to wait before using them. Refused if that would be longer than `maxWait`.
   *
   * @param key whom to count
   * @param options the units, and the longest wait for them
   */
  async reserve(key: string, { cost, maxWait = '1y' }: ReserveOptions = {}): Promise<Reservation> {
    const counter = this.counter(key);
    const units = this.cost(cost);
    const maxWaitMs = toMs('maxWait', maxWait);
    const { algorithm } = counter.limit;
    if (algorithm.reservation === undefined && algorithm.queue === undefined) {
      throw new RateLimitArgumentError(
        messages.notReservable(this.name, algorithm.name, algorithms.withAny('reservation', 'queue')),
      );
    }
    const answer = await this.store.reserve({ ...counter, cost: units, maxWaitMs });
    const taken = answer.allowed ? refundOf({ ...counter, units }, answer) : undefined;
    return new Reservation(toCallerDecision(answer, counter.limit), taken, this.store);
  }

  /**
   * Holds `cost` units of a `concurrency` limit while `work` runs, and releases them whatever happens; long work renews its
   * lease. Waits for its turn up to `timeout`, else rejects with `RateLimitTimeoutError`, or with the signal's reason.
   *
   * @param key whom to count
   * @param work what to run, with the lease
   * @param options its `timeout` is 0 unless given: now or not at all
   * @returns what `work` returns
   */
  async hold<T>(
    key: string,
    work: (lease: Lease) => T | Promise<T>,
    { cost, timeout = 0, signal }: AcquireOptions = {},
  ): Promise<T> {
    const counter = this.counter(key);
    const units = this.cost(cost);
    const { algorithm } = counter.limit;
    if (typeof work !== 'function') throw new RateLimitArgumentError(messages.wrongWork(work));
    if (algorithm.holding === undefined) {
      throw new RateLimitArgumentError(messages.notHeld(this.name, algorithm.name, algorithms.withAny('holding')));
    }
    const { allowed, ticket, source } = await this.wait(counter, units, timeout, signal);
    const held = allowed && ticket !== undefined ? { ...counter, units, ticket, source } : undefined;
    const lease = new Lease(held, this.store, this.room).keepAlive();
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  }

  /** Gives `units` back that were consumed; never more than are counted. */
  async refund(key: string, units: number): Promise<void> {
    const counter = this.counter(key);
    assertUnits(units);
    this.refuseHeld(counter, 'refunded');
    await this.room.refund({ ...counter, units });
  }

  /** Charges `units` whether they fit or not. What is owed then is paid off before anything is allowed; at most one quota. */
  async penalize(key: string, units: number): Promise<void> {
    const counter = this.counter(key);
    assertUnits(units);
    this.refuseHeld(counter, 'penalized');
    await this.store.penalize({ ...counter, units });
  }

  /**
   * Refuses a key for a time from now, whatever was counted, which stays and runs out meanwhile: milliseconds or a duration such
   * as `'15m'`, at most 1 year. It takes the place of a block that is not over yet.
   */
  async block(key: string, duration: Duration): Promise<void> {
    const counter = this.counter(key);
    const ms = toMs('duration', duration);
    if (ms === 0) throw new RateLimitArgumentError(messages.wrongDuration('duration', duration));
    await this.store.block(counter, ms);
  }

  /** Ends a block. Behind one that `blockFor` began, a key begins anew; behind one made by `block`, what was counted stays. */
  async unblock(key: string): Promise<void> {
    const counter = this.counter(key);
    await this.store.block(counter, 0);
    this.room.wake(counter);
  }

  /** Forgets what was counted for a key, what is held, and a block. */
  async reset(key: string): Promise<void> {
    const counter = this.counter(key);
    await this.store.reset([counter]);
    this.room.restart(counter);
  }

  /**
   * The newest `windows` of a `calendar-window` that can still be read, or slices of a `sliding-window`, the newest first; all
   * unless given.
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

  private async decide(counter: Counter, cost: number, peek: boolean): Promise<StoreDecision> {
    const [decisions] = await this.store.check([{ entries: [{ ...counter, cost }], peek }]);
    return decisions?.[0] as StoreDecision;
  }

  /** Waits for units. A shadow limit says at once whether they would have been there in time. */
  private async wait(
    counter: Counter,
    cost: number,
    timeout: Duration | undefined,
    signal: AbortSignal | undefined,
  ): Promise<StoreDecision> {
    const timeoutMs = timeout === undefined ? Infinity : toMs('timeout', timeout);
    assertSignal(signal);
    if (counter.limit.shadow) {
      signal?.throwIfAborted();
      return this.store.reserve({ ...counter, cost, maxWaitMs: Math.min(timeoutMs, MAX_INTERVAL_MS) });
    }
    return this.room.wait(this.rule, counter.identity, { cost, timeoutMs, signal });
  }

  /** What the user is told: with a lease if something is held. */
  private decision(answer: StoreDecision, counter: Counter, units: number): LeasedDecision {
    return withLease(toCallerDecision(answer, counter.limit), answer, { ...counter, units }, this.store, this.room);
  }

  private counter(key: string): Counter {
    assertKey(key);
    return { limit: this.rule.limit, identity: key };
  }

  private cost(cost: number = this.rule.fixedCost): number {
    assertCost(cost);
    return cost;
  }

  private refuseHeld({ limit: { algorithm } }: Counter, what: string): void {
    if (algorithm.holding === undefined) return;
    throw new RateLimitArgumentError(messages.onlyHeld(this.name, algorithm.name, what));
  }
}
