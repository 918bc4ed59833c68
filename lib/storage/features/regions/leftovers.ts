import { setTimeout as sleep } from 'node:timers/promises';
import { withDeadline } from '../../redis/deadline.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { addressOf, type CounterIndex, LEFT_AFTER_MS, type LeftCounter, readAddress } from './counter-index.js';
import type { FindLimit } from '../feature.js';
import type { Home } from './home.js';
import { limitRegionsOf } from './limit-regions.js';
import type { RegionCounter } from './region-counter.js';

/** How often an instance records the counters that it maintains, and searches for abandoned ones, in milliseconds. */
const NOTE_MS = 10_000;
const LOOK_MS = 5000;
/** Maximum number of abandoned counters to process at a time. */
const MOST_AT_ONCE = 200;
/** How long an ending instance waits for the home to take units back, in milliseconds. */
const LAST_MS = 2000;
/** How often it checks in that time if the exchange of another instance is over, in milliseconds. */
const LOOK_AGAIN_MS = 25;
/** Longer identities are not added to the index, since clients could otherwise decide how much memory it takes. */
const LONGEST_IDENTITY = 256;
/** Counters of limits that no instance knows are removed with this probability each time. */
const FORGOTTEN = 0.001;

/** The counters of an instance. */
export interface OwnCounters {
  /** A maintained counter. */
  known(limit: Pick<CompiledLimit, 'id'>, identity: string): RegionCounter | undefined;
  /** Creates a counter for a single use. */
  make(counter: Counter): RegionCounter;
  all(): Iterable<RegionCounter>;
  /** Gets the time of the home, which is required to return units. */
  ready(): Promise<void>;
}

/** Returns units that nobody maintains any more, because instances end and drop counters. */
export class Leftovers {
  private unsaid = new Set<string>();
  private lookedAt = performance.now() - LOOK_MS / 2;
  private isLooking = false;
  private hasEnded = false;
  /** Until when units are returned after it has ended. */
  private until = 0;

  constructor(
    readonly index: CounterIndex,
    private readonly home: Home,
    private readonly findLimit: FindLimit | undefined,
    private readonly own: OwnCounters,
  ) {}

  /** Records that this instance maintains a counter, unless it has recently done so. */
  note(counter: RegionCounter, now = performance.now()): void {
    if (now - counter.notedAt < NOTE_MS) return;
    counter.notedAt = now;
    if (!isIndexed(counter)) return;
    if (this.unsaid.size === 0) setImmediate(() => void this.say().catch(() => undefined));
    this.unsaid.add(addressOf(counter.counter));
  }

  /** Searches for abandoned counters at intervals. */
  tick(now: number): void {
    if (this.isLooking || now - this.lookedAt < LOOK_MS || this.home.isCut) return;
    this.isLooking = true;
    this.look()
      // More of them are waiting.
      .then((isMore) => (this.lookedAt = isMore ? -Infinity : performance.now()))
      .catch(() => (this.lookedAt = performance.now()))
      .finally(() => (this.isLooking = false));
  }

  /** The counter of an address, maintained by this instance or not; `undefined` if its limit is unknown. */
  counterOf(address: string): RegionCounter | undefined {
    const [id, identity] = readAddress(address) ?? [];
    if (id === undefined || identity === undefined) return undefined;
    const known = this.own.known({ id }, identity);
    if (known !== undefined) return known;
    const limit = this.findLimit?.(id, identity);
    return limit && limitRegionsOf(limit) && this.own.make({ limit, identity });
  }

  /** Leaves the counters to other instances. The last instance returns all units. Never rejects. */
  async end(): Promise<void> {
    this.hasEnded = true;
    const counters = [...this.own.all()];
    const noted = counters.filter(isIndexed);
    try {
      // Without an index, no other instance is known. If another one needs these units, it has to request new ones.
      const others = await this.index.leave(noted.map(({ counter }) => addressOf(counter))).catch(() => 0);
      if (others > 0 || this.home.isCut) return;
      this.until = performance.now() + LAST_MS;
      const own = counters.map((counter) => this.release(counter));
      await withDeadline(Promise.all([this.giveAllBack().catch(() => undefined), ...own]), LAST_MS);
    } catch {
      // Another instance finds the rest in the index and returns it.
    }
  }

  /** Returns true if this instance maintains a counter. */
  isOwn(counter: RegionCounter): boolean {
    const { limit, identity } = counter.counter;
    return this.own.known(limit, identity) === counter;
  }

  private async say(): Promise<void> {
    const { unsaid } = this;
    this.unsaid = new Set();
    if (!this.hasEnded) await this.index.note([...unsaid]);
  }

  /** Returns true if there may be more. */
  private async look(): Promise<boolean> {
    const left = await this.index.left(LEFT_AFTER_MS, MOST_AT_ONCE);
    if (left.length === 0) return false;
    await this.giveBack(left);
    return left.length === MOST_AT_ONCE;
  }

  private async giveAllBack(): Promise<void> {
    const tried = new Set<string>();
    while (performance.now() < this.until) {
      // The negative age includes counters that were recorded just now.
      const left = await this.index.left(-1000, MOST_AT_ONCE + tried.size);
      const others = left.filter(({ address }) => !tried.has(address));
      if (others.length === 0) return;
      for (const { address } of others) tried.add(address);
      await this.giveBack(others);
    }
  }

  /** Returns the units of counters, and removes counters without units. */
  private async giveBack(left: readonly LeftCounter[]): Promise<void> {
    const ends = await Promise.all(left.map(({ address }) => this.seeTo(address)));
    const done = left.filter((_, index) => ends[index] === 'done');
    const later = left.filter((_, index) => ends[index] === 'later');
    if (done.length > 0) await this.index.drop(done);
    if (later.length > 0 && !this.hasEnded) await this.index.note(later.map(({ address }) => address));
  }

  private async seeTo(address: string): Promise<'done' | 'later' | 'own'> {
    const counter = this.counterOf(address);
    if (counter === undefined) return Math.random() < FORGOTTEN ? 'done' : 'later';
    // The instance records its own counters, and will do so again soon.
    if (!this.hasEnded && this.isOwn(counter)) return 'own';
    return (await this.release(counter)) ? 'done' : 'later';
  }

  private async release(counter: RegionCounter): Promise<boolean> {
    try {
      await this.own.ready();
      // Other ending instances may leave an exchange open. It is repeated after a while.
      while (!(await counter.release())) {
        if (performance.now() > this.until || this.home.isCut) return false;
        await sleep(LOOK_AGAIN_MS);
      }
      return true;
    } catch {
      return false;
    }
  }
}

function isIndexed({ counter }: RegionCounter): boolean {
  return counter.identity.length <= LONGEST_IDENTITY;
}
