import { Histogram, Timeline } from './timeline.js';
import type { LoggedRequest } from './logged-request.js';
import type { SimulatedLimit } from './simulated-limit.js';
import { type TrackedKey, TrackedKeys } from './tracked-keys.js';

/**
 * Decides requests like an app that counts in process, with the same algorithms, on a clock that moves to the time of each request. Each
 * check of all limits is atomic: all allow it and are charged, or none is.
 */
export class Simulation {
  /** In microseconds; it never goes back. */
  now = 0;
  start: number | undefined;
  allowed = 0;
  refused = 0;
  /** Requests with a time before the clock's. */
  late = 0;
  /** The number of evicted keys, and how many of these had non-empty counters. */
  evicted = 0;
  evictedCounting = 0;
  /** The waits of rejected requests: the longest that any limit reported. */
  readonly waits = new Histogram();
  readonly timeline = new Timeline();
  readonly keys: TrackedKeys;
  private readonly tracked: TrackedKey[] = [];

  constructor(
    readonly limits: readonly SimulatedLimit[],
    maxKeys: number,
  ) {
    const sources = new Set(limits.map(({ source }) => source));
    const limitsOf = [...sources]
      .toSorted((one, other) => one - other)
      .map((source) => limits.filter((each) => each.source === source).map(({ limit }) => limit));
    this.keys = new TrackedKeys(maxKeys, limitsOf, (key) => this.forget(key));
  }

  decide(request: LoggedRequest): void {
    const { time, keys } = request;
    if (time < this.now) this.late++;
    else this.now = time;
    this.start ??= time;
    const { tracked } = this;
    for (let source = 0; source < keys.length; source++) tracked[source] = this.keys.of(source, keys[source]!);
    const isAllowed = this.look(request);
    const wait = this.commit(request, isAllowed);
    if (isAllowed) this.allowed++;
    else {
      this.refused++;
      if (wait < Infinity) this.waits.add(wait);
    }
    this.timeline.add(this.now, isAllowed);
    for (const key of tracked) {
      if (isAllowed) key.allowed++;
      else key.refused++;
      this.keys.used(key);
    }
  }

  /** Asks all limits. Returns whether no enforced limit refuses. */
  private look(request: LoggedRequest): boolean {
    let isAllowed = true;
    for (const each of this.limits) {
      const { limit, source, place } = each;
      const fits = this.tracked[source]!.counters[place]!.look(each.askedOf(request), this.now);
      if (!fits && !limit.shadow) isAllowed = false;
    }
    return isAllowed;
  }

  /** Charges all limits, or none. Returns the longest wait of the limits that refuse. */
  private commit(request: LoggedRequest, isAllowed: boolean): number {
    let wait = 0;
    for (const limit of this.limits) {
      const key = this.tracked[limit.source]!;
      const counter = key.counters[limit.place]!;
      const cost = limit.askedOf(request);
      const charged = limit.chargedOf(request);
      let delayMs = 0;
      if (isAllowed && counter.isAllowed) delayMs = counter.settle(cost, charged);
      else {
        const retryAfterMs = counter.refuse(cost);
        if (!counter.isAllowed) {
          limit.refuse(retryAfterMs);
          key.refusedBy[limit.place]!++;
          if (!limit.limit.shadow) wait = Math.max(wait, retryAfterMs);
        }
      }
      if (isAllowed) limit.admit(counter, key.identity, charged, this.now, delayMs);
    }
    return wait;
  }

  private forget(key: TrackedKey): void {
    this.evicted++;
    if (key.counters.some((counter) => counter.isCounting(this.now))) this.evictedCounting++;
    // Requests may still refer to a key that has been evicted.
    if (!this.tracked.includes(key)) key.counters = [];
  }
}
