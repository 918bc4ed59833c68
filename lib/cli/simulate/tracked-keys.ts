import type { CompiledLimit } from '../../limits/compiled-limit.js';
import { BoundedMap, Kept } from '../../util/bounded-map.js';
import { SimulatedCounter } from './simulated-counter.js';

/** What a key takes, and each of its counters without what is listed: a little more than was measured. */
const KEY_BYTES = 400;
const COUNTER_BYTES = 600;
const NUMBER_BYTES = 8;
/** How much memory all of them may take, roughly. */
const MOST_BYTES = 600_000_000;

/** One identity by one of the keys, and what became of its requests. */
export class TrackedKey extends Kept {
  allowed = 0;
  refused = 0;
  /** How many each limit of this key refused. */
  readonly refusedBy: number[];
  /** The counters of the limits that have this key. */
  counters: readonly SimulatedCounter[];

  constructor(
    id: string,
    /** Which of the keys of a request it is. */
    readonly source: number,
    readonly identity: string,
    limits: readonly CompiledLimit[],
  ) {
    super(id);
    this.refusedBy = limits.map(() => 0);
    this.counters = limits.map((limit) => new SimulatedCounter(limit));
  }

  /** Roughly. */
  get memory(): number {
    let bytes = KEY_BYTES;
    for (const counter of this.counters) {
      bytes += COUNTER_BYTES + NUMBER_BYTES * counter.admitted.room + counter.listedBytes;
    }
    return bytes;
  }
}

/** An identity as requests have it: one object for several of them, so that what is known of it is found at once. */
export class RequestKey {
  /** What was found the last time; it may have been forgotten since. */
  tracked: TrackedKey | undefined;

  constructor(readonly identity: string) {}
}

/** The identities that the simulation knows, bounded: the least recently used one goes first. */
export class TrackedKeys {
  private readonly keys: BoundedMap<TrackedKey>;
  /** How many there were; one that went and came again is two. */
  seen = 0;

  constructor(
    maxKeys: number,
    /** The limits of each of the keys of a request. */
    private readonly limits: readonly (readonly CompiledLimit[])[],
    onEvicted: (key: TrackedKey) => void,
  ) {
    this.keys = new BoundedMap(maxKeys, MOST_BYTES, onEvicted);
  }

  /** An identity by one of the keys of a request. */
  of(source: number, key: RequestKey): TrackedKey {
    if (key.tracked?.segment === undefined) key.tracked = this.find(source, key.identity);
    return key.tracked;
  }

  /** A key was used, and may have grown. */
  used(tracked: TrackedKey): void {
    this.keys.put(tracked, tracked.memory, false);
  }

  values(): IterableIterator<TrackedKey> {
    return this.keys.values();
  }

  private find(source: number, identity: string): TrackedKey {
    const id = this.limits.length === 1 ? identity : `${source}:${identity}`;
    const known = this.keys.get(id);
    if (known !== undefined) return known;
    this.seen++;
    const tracked = new TrackedKey(id, source, identity, this.limits[source]!);
    this.used(tracked);
    return tracked;
  }
}
