import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { BoundedMap, Kept } from '../../engine/util/bounded-maps.js';
import { SimulatedCounter } from './simulated-limit.js';

/** The bytes of a key and of each of its counters, without their lists: slightly more than measured. */
const KEY_BYTES = 400;
const COUNTER_BYTES = 600;
const NUMBER_BYTES = 8;
/** Maximum memory of all keys, approximately. */
const MOST_BYTES = 600_000_000;

/** One identity of one of the keys, and the results of its requests. */
export class TrackedKey extends Kept {
  allowed = 0;
  refused = 0;
  readonly refusedBy: number[];
  counters: readonly SimulatedCounter[];

  constructor(
    id: string,
    /** The index of the key among those of a request. */
    readonly source: number,
    readonly identity: string,
    limits: readonly CompiledLimit[],
  ) {
    super(id);
    this.refusedBy = limits.map(() => 0);
    this.counters = limits.map((limit) => new SimulatedCounter(limit));
  }

  /** The estimated bytes that it takes. */
  get memory(): number {
    let bytes = KEY_BYTES;
    for (const counter of this.counters) {
      bytes += COUNTER_BYTES + NUMBER_BYTES * counter.admitted.room + counter.listedBytes;
    }
    return bytes;
  }
}

/** An identity of requests. Requests with the same identity share one object, which gives quick access to its data. */
export class RequestKey {
  /** The result of the last lookup, which may have been evicted since. */
  tracked: TrackedKey | undefined;

  constructor(readonly identity: string) {}
}

/** The identities of the simulation, in limited memory: the least recently used one is evicted first. */
export class TrackedKeys {
  private readonly keys: BoundedMap<TrackedKey>;
  /** The number of identities; one that was evicted and came again counts twice. */
  seen = 0;

  constructor(
    maxKeys: number,
    /** The limits of each key of a request. */
    private readonly limits: readonly (readonly CompiledLimit[])[],
    onEvicted: (key: TrackedKey) => void,
  ) {
    this.keys = new BoundedMap(maxKeys, MOST_BYTES, onEvicted);
  }

  /** The identity of one of the keys of a request. */
  of(source: number, key: RequestKey): TrackedKey {
    if (key.tracked?.segment === undefined) key.tracked = this.find(source, key.identity);
    return key.tracked;
  }

  /** Records that a key was used, and may have grown. */
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
