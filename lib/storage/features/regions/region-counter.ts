import type { Counter } from '../../../engine/limits/counter.js';
import type { RedisStore } from '../../stores/redis/redis.store.js';
import type { Reply } from '../../stores/redis/reply.js';
import { FRAGMENT, type Grant, type Home, type Wish } from './home.js';
import type { LimitRegions } from './limit-regions.js';
import { endsWithWindow } from './terms.js';
import { Kept } from '../../../engine/util/recency-list.js';

/** The script's note about a decision: flags in the lowest bits, then the number of available units. */
const ON_ITS_WAY = 1;
const DUE = 2;
const MAY_COME = 4;
const UNITS = 8;

/** The first value of the reply to `ask`. */
const NOTHING = 0;
const ASKED = 3;
/**
 * The least value of each number that follows: the number of the exchange, its history, the units wanted, waited for, lacked by the largest
 * cost and to charge, the window, the units granted in it, and those held. The returns come last.
 */
const WISH = [0, 0, 0, 0, 0, 0, 0, 0, 0];

/** Which exchanges are made: only if one is due, in any case, or one that returns all units. */
const IF_DUE = 0;
const IN_ANY_CASE = 1;
const ALL_BACK = 2;
/** How many exchanges it may take to return everything: one that was open may still bring units. */
const MOST_RELEASES = 4;

/** How long the units should last until the next exchange: this many milliseconds, or a multiple of the home's latency. */
const LASTS_MS = 200;
const LATENCIES = 2.5;
/** The minimum time between two exchanges of a counter that has units, in milliseconds. */
const SPACING_MS = 40;
/** How often the home is called although it has reported that it won't grant units yet, in milliseconds. */
const ASK_AGAIN_MS = 1000;
/** When an unanswered exchange is sent again: after this many milliseconds, or a multiple of the home's latency. */
const PATIENCE_MS = 500;
const PATIENT_LATENCIES = 3;
/** How often an unused counter is maintained per lifetime of its units, and the minimum interval in milliseconds. */
const LOOKS_A_LIFETIME = 4;
const LEAST_LOOK_MS = 200;
/** A counter is dropped after this many checks without anything to do. */
const IDLE_LOOKS = 4;

/** The result of an exchange: units, or none; no exchange was necessary; or another one is under way. */
export type ExchangeOutcome = 'granted' | 'none' | 'nothing' | 'waiting';

/** One counter of a region, as an instance knows it. */
export class RegionCounter extends Kept {
  private readonly fromWindow: boolean;
  private readonly lookMs: number;
  /** Checks that wait for its units. */
  waiters = 0;
  private running: Promise<ExchangeOutcome> | undefined;
  private askedAt = -Infinity;
  private exchangedAt = -Infinity;
  private usedAt = performance.now();
  private idle = 0;
  private waiting = 0;
  private largest = 0;
  private isTouched = false;
  /** True if it no longer takes units in advance. */
  private isReleased = false;
  private learning: Promise<void> | undefined;
  /** The number of resets at home that this instance knows of. */
  private resets = 0;
  /** When the instance last recorded that it maintains the counter. */
  notedAt = -Infinity;

  constructor(
    id: string,
    readonly counter: Counter,
    readonly atHome: Counter,
    private readonly regions: LimitRegions,
    private readonly region: RedisStore,
    private readonly home: Home,
  ) {
    super(id);
    this.fromWindow = endsWithWindow(regions.algorithm);
    this.lookMs = Math.max(LEAST_LOOK_MS, regions.lifetime / 1000 / LOOKS_A_LIFETIME);
  }

  /** Reads the script's note about a decision. Returns true if the home may grant missing units. */
  noted(note: number, isAllowed: boolean): boolean {
    this.usedAt = performance.now();
    this.idle = 0;
    const bits = note % UNITS;
    const mayCome = (bits & MAY_COME) !== 0;
    // Waiting checks request units themselves. Units taken in advance would leave them fewer.
    const asks = !isAllowed && mayCome;
    if (!asks && (bits & DUE) !== 0 && (bits & ON_ITS_WAY) === 0) this.refill(this.usedAt);
    return mayCome;
  }

  /**
   * Called when the counter rejects until a time that the home reported. Others may return units before that, so the home is called at
   * intervals.
   */
  refused(): void {
    if (this.running !== undefined || performance.now() - this.exchangedAt <= ASK_AGAIN_MS || this.home.isCut) return;
    this.start(0, IN_ANY_CASE).catch(() => undefined);
  }

  /** True if there is nothing left to maintain. */
  isForgotten(now: number): boolean {
    return this.idle >= IDLE_LOOKS && now - this.usedAt > this.lookMs * IDLE_LOOKS;
  }

  /** Called when units came back or are owed, so that the next exchange is due. */
  touched(): void {
    this.usedAt = performance.now();
    this.idle = 0;
    this.isTouched = true;
  }

  /** Returns units that are no longer needed, at intervals. */
  lookAfter(now: number): void {
    if (this.running !== undefined || now - this.askedAt < (this.isTouched ? SPACING_MS : this.lookMs)) return;
    this.isTouched = false;
    this.start(0).catch(() => undefined);
  }

  /** Returns all units held here, and takes no more in advance. Resolves to true if none are left. */
  async release(): Promise<boolean> {
    this.isReleased = true;
    for (let exchanges = 0; exchanges < MOST_RELEASES; exchanges++) {
      while (this.running !== undefined) await this.running.catch(() => undefined);
      const outcome = await this.start(0, ALL_BACK);
      if (outcome === 'nothing') return true;
      if (outcome === 'waiting') return false;
    }
    return false;
  }

  /** Makes an exchange for units that a check waits for, or at least for some of them. Waits for a running exchange first. */
  async exchangeFor(units: number, largest = units): Promise<ExchangeOutcome> {
    if (this.running !== undefined) return this.running;
    this.waiting += units;
    this.largest = Math.max(this.largest, largest);
    // All checks that wait in this turn share the request.
    await Promise.resolve();
    return this.running ?? this.start(this.waiting);
  }

  /**
   * Called after a reset at home. Units of the region go back there, also those that an exchange under way brings, and the home takes only
   * those that it granted since.
   */
  async forget(): Promise<void> {
    this.resets++;
    await this.call(['forget'], (reply) => reply.operation());
    this.touched();
  }

  /** Gets the current state of the counter at home: a block, or its end. */
  learn(): Promise<void> {
    this.learning ??= this.learnNext();
    return this.learning;
  }

  /** All calls before it begins share one exchange, which begins after them. */
  private async learnNext(): Promise<void> {
    do await this.running?.catch(() => undefined);
    while (this.running !== undefined);
    this.learning = undefined;
    await this.start(0, IN_ANY_CASE);
  }

  private refill(now: number): void {
    if (this.running !== undefined || this.waiters > 0 || now - this.askedAt < SPACING_MS || this.home.isCut) return;
    this.start(0).catch(() => undefined);
  }

  private start(waiting: number, which = IF_DUE): Promise<ExchangeOutcome> {
    const { largest } = this;
    this.waiting = this.largest = 0;
    this.askedAt = performance.now();
    this.running = this.exchange(waiting, largest, which).finally(() => (this.running = undefined));
    return this.running;
  }

  private async exchange(waiting: number, largest: number, which: number): Promise<ExchangeOutcome> {
    const { resets } = this;
    const wish = await this.ask(waiting, largest, which);
    if (wish === 'waiting') return wish;
    if (wish === undefined) {
      this.idle++;
      return 'nothing';
    }
    this.idle = 0;
    this.exchangedAt = performance.now();
    const grant = await this.home.grant(this.atHome, wish);
    if (grant === undefined) return 'waiting';
    const known = this.resets;
    await this.deposit(wish, grant, known !== resets);
    // Calls that are sent again overtake each other.
    if (this.resets !== known) await this.forget();
    return grant.units > 0 ? 'granted' : 'none';
  }

  private ask(waiting: number, largest: number, which: number): Promise<Wish | 'waiting' | undefined> {
    const { latencyMs } = this.home;
    const lasts = this.isReleased ? 0 : Math.max(LASTS_MS, LATENCIES * latencyMs) * 1000;
    // An instance that ends has little time. An exchange that is sent twice is made only once.
    const patience = (this.isReleased ? PATIENCE_MS : Math.max(PATIENCE_MS, PATIENT_LATENCIES * latencyMs)) * 1000;
    const values = ['ask', waiting, largest, Math.round(lasts), Math.round(patience), which];
    return this.call(values, readWish).then((wish) => (wish === NOTHING ? undefined : wish));
  }

  private deposit([id, origin]: Wish, { chargedAt, window, numbers }: Grant, wasReset: boolean): Promise<number> {
    const lapses = chargedAt + this.regions.lifetime;
    const expiresAt = this.fromWindow ? Math.min(lapses, window) : lapses;
    const values = ['deposit', id, origin, ...numbers, expiresAt, this.fromWindow ? 1 : 0, wasReset ? 1 : 0];
    return this.call(values, (reply) => reply.operation());
  }

  private call<T>(values: readonly (number | string)[], read: (reply: Reply) => T | undefined): Promise<T> {
    return this.region.ofFeature(this.counter, { name: FRAGMENT, keys: [], values: () => values }, read);
  }
}

function readWish(reply: Reply): Wish | 'waiting' | typeof NOTHING | undefined {
  const asked = reply.wait();
  if (asked === undefined || asked === NOTHING) return asked;
  if (asked !== ASKED) return 'waiting';
  const [id, origin, ...others] = reply.numbers(WISH)!;
  const returns = reply.pairs();
  return [id!, origin!, ...others, returns.length / 2, ...returns];
}
