import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import { type Counter, counterId } from '../../../engine/limits/counter.js';
import type { RedisStore } from '../../stores/redis/redis.store.js';
import { BoundedMap } from '../../../engine/util/bounded-maps.js';
import type { CounterIndex } from './counter-index.js';
import { RegionCounter } from './region-counter.js';
import type { Home } from './home.js';
import { Leftovers } from './leftovers.js';
import type { FindLimit } from '../feature.js';
import { counterAtHome, limitRegionsOf } from './limit-regions.js';

/**
 * Maximum number of counters to track, and the memory that they may take. Units of other counters are returned like those of an ended
 * instance.
 */
const MAX_COUNTERS = 10_000;
const MAX_BYTES = 16_000_000;
/** The estimated bytes of a counter, not counting its identity. */
const BYTES = 800;
/** How often counters are maintained, in milliseconds, and the maximum number at a time. */
const TICK_MS = 100;
const MOST_AT_ONCE = 200;
/** How often a region reports to the home, and the maximum age of the home's time, in milliseconds. */
const HELLO_MS = 1000;
const OLD_TIME_MS = 5000;
/** How often to check if a failed home is back. */
const PROBE_MS = 500;

/** The exchanges between an instance and the home: one at a time for each counter in use. */
export class Exchanges {
  readonly leftovers: Leftovers;
  private readonly counters = new BoundedMap<RegionCounter>(MAX_COUNTERS, MAX_BYTES);
  private readonly timer: NodeJS.Timeout;
  private last: RegionCounter | undefined;
  private saying: Promise<void> | undefined;
  private saidAt = -Infinity;
  private queue: RegionCounter[] = [];

  constructor(
    private readonly region: RedisStore,
    readonly home: Home,
    /** Milliseconds since an instance of the region last got an answer from the home. */
    private readonly lastCall: () => Promise<number>,
    index: CounterIndex,
    findLimit: FindLimit | undefined,
  ) {
    this.leftovers = new Leftovers(index, home, findLimit, this);
    this.timer = setInterval(() => this.tick(), TICK_MS).unref();
  }

  /** The last instance of a region returns all units. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.leftovers.end();
  }

  /** The counter of an entry. It is maintained from now on. */
  of(counter: Counter): RegionCounter {
    const { limit, identity } = counter;
    const known = this.counters.get(counterId(limit, identity));
    if (known?.counter.limit === limit) {
      this.counters.touch(known);
      return known;
    }
    // The rate was changed, so the home also has to use the new one.
    if (known !== undefined) this.counters.delete(known);
    const made = this.make(counter);
    this.counters.put(made, BYTES + 2 * identity.length, false);
    this.leftovers.note(made);
    return made;
  }

  /** @internal Creates a counter that is not maintained. */
  make(counter: Counter): RegionCounter {
    const { limit, identity } = counter;
    const id = counterId(limit, identity);
    const regions = limitRegionsOf(limit)!;
    this.bindTime([counter]);
    this.last = new RegionCounter(id, { limit, identity }, counterAtHome(counter), regions, this.region, this.home);
    return this.last;
  }

  /** @internal A maintained counter. */
  known(limit: Pick<CompiledLimit, 'id'>, identity: string): RegionCounter | undefined {
    return this.counters.get(counterId(limit, identity));
  }

  /** Sets the clock for the limits that the region's server decides. */
  bindTime(counters: readonly Counter[]): void {
    for (const { limit } of counters) {
      const regions = limitRegionsOf(limit);
      if (regions !== undefined) regions.time = this.home.clock;
    }
  }

  /** All maintained counters. */
  all(): Iterable<RegionCounter> {
    return this.counters.values();
  }

  /** Gets the time of the home before the first check. All checks share one call. */
  async ready(): Promise<void> {
    if (this.home.clock.latest() === 0 && this.last !== undefined) await this.hello();
  }

  private hello(): Promise<void> {
    this.saidAt = performance.now();
    this.saying ??= this.home.hello(this.last!.atHome).finally(() => (this.saying = undefined));
    return this.saying;
  }

  private tick(): void {
    const now = performance.now();
    void this.sayHello(now).catch(() => undefined);
    if (this.queue.length === 0) this.queue = [...this.all()];
    const { isCut } = this.home;
    for (const counter of this.queue.splice(0, MOST_AT_ONCE)) {
      this.leftovers.note(counter, now);
      if (isCut) continue;
      if (counter.isForgotten(now)) this.counters.delete(counter);
      else counter.lookAfter(now);
    }
    this.leftovers.tick(now);
  }

  /**
   * Reports to the home. A region does so once per second through any of its instances, and each instance often enough to know the time.
   */
  private async sayHello(now: number): Promise<void> {
    const { home, last } = this;
    if (last === undefined || now - this.saidAt < (home.isCut ? PROBE_MS : HELLO_MS)) return;
    this.saidAt = now;
    if (home.isCut || home.clock.ageMs > OLD_TIME_MS || (await this.lastCall()) >= HELLO_MS) await this.hello();
  }
}
