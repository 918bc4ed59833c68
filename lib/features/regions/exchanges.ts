import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { Counter } from '../../limits/counter.js';
import { LONGEST_IDENTITY } from '../../limits/identity.js';
import type { RedisStore } from '../../stores/redis/redis.store.js';
import { RegionCounter } from './region-counter.js';
import type { Home } from './home.js';
import { atHome, limitRegionsOf } from './limit-regions.js';

/** Counters that are refilled ahead of requests at most; any more ask the home when they have no units. */
const MAX_COUNTERS = 10_000;
/** How often counters are looked after, in milliseconds, and how many of them at most. */
const TICK_MS = 100;
const MOST_AT_ONCE = 200;
/** How often a region says that it is there, and how old the time of the home may become, in milliseconds. */
const HELLO_MS = 1000;
const OLD_TIME_MS = 5000;
/** How often a home that fails is asked whether it is back. */
const PROBE_MS = 500;

/** The exchanges of an instance with the home: for each counter that it uses, one at a time. */
export class Exchanges {
  private readonly counters = new Map<CompiledLimit, Map<string, RegionCounter>>();
  private readonly homes = new WeakMap<CompiledLimit, CompiledLimit>();
  private readonly timer: NodeJS.Timeout;
  private count = 0;
  private last: RegionCounter | undefined;
  private saying: Promise<void> | undefined;
  private saidAt = -Infinity;
  private queue: RegionCounter[] = [];

  constructor(
    private readonly region: RedisStore,
    readonly home: Home,
    /** Milliseconds since an instance of the region last got an answer of the home. */
    private readonly lastCall: () => Promise<number>,
  ) {
    this.timer = setInterval(() => this.tick(), TICK_MS).unref();
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** The counter of an entry; one that is forgotten at once if there are too many. */
  of(counter: Counter): RegionCounter {
    const { limit, identity } = counter;
    let ofLimit = this.counters.get(limit);
    const known = ofLimit?.get(identity);
    if (known !== undefined) return known;
    const regions = limitRegionsOf(limit)!;
    const made = new RegionCounter({ limit, identity }, this.atHome(counter), regions, this.region, this.home);
    this.last = made;
    if (this.count >= MAX_COUNTERS || identity.length > LONGEST_IDENTITY) return made;
    if (ofLimit === undefined) this.counters.set(limit, (ofLimit = new Map()));
    ofLimit.set(identity, made);
    this.count++;
    return made;
  }

  /** The same counter at home. */
  atHome(counter: Counter): Counter {
    return { limit: this.homeOf(counter.limit), identity: counter.identity };
  }

  /** All counters that are looked after. */
  *all(): Iterable<RegionCounter> {
    for (const ofLimit of this.counters.values()) yield* ofLimit.values();
  }

  /** Learns the time of the home before the first check. One call serves all that wait for it. */
  async ready(): Promise<void> {
    if (this.home.clock.latest() === 0 && this.last !== undefined) await this.hello();
  }

  private homeOf(limit: CompiledLimit): CompiledLimit {
    let home = this.homes.get(limit);
    if (home === undefined) this.homes.set(limit, (home = atHome(limit)));
    return home;
  }

  private hello(): Promise<void> {
    this.saidAt = performance.now();
    this.saying ??= this.home.hello(this.last!.atHome).finally(() => (this.saying = undefined));
    return this.saying;
  }

  private tick(): void {
    const now = performance.now();
    void this.sayHello(now).catch(() => undefined);
    if (this.home.isCut) return;
    if (this.queue.length === 0) this.queue = [...this.all()];
    for (const counter of this.queue.splice(0, MOST_AT_ONCE)) {
      if (counter.isForgotten(now)) this.forget(counter);
      else counter.lookAfter(now);
    }
  }

  /** A region calls once a second, whichever of its instances does, and each instance often enough to know the time. */
  private async sayHello(now: number): Promise<void> {
    const { home, last } = this;
    if (last === undefined || now - this.saidAt < (home.isCut ? PROBE_MS : HELLO_MS)) return;
    this.saidAt = now;
    if (home.isCut || home.clock.ageMs > OLD_TIME_MS || (await this.lastCall()) >= HELLO_MS) await this.hello();
  }

  private forget({ counter: { limit, identity } }: RegionCounter): void {
    const ofLimit = this.counters.get(limit);
    if (ofLimit?.delete(identity) !== true) return;
    this.count--;
    if (ofLimit.size === 0) this.counters.delete(limit);
  }
}
