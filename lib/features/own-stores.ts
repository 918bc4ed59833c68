import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { Counter } from '../limits/counter.js';
import type { FeatureReading, ReadableStore } from '../stores/feature-reading.js';
import { MemoryStore as CountsInMemory } from '../stores/memory/memory.store.js';
import { RedisStore as CountsOnRedis } from '../stores/redis/redis.store.js';
import type { KeyDays, NamedUnits, TimeRange } from './usage/range.js';
import { pagesOf, unitsOf } from './usage/stores.js';

/** Counters in process, with all that apps may ask of a store: a store of an app that wraps this one hands its calls on. */
export class MemoryStore extends CountsInMemory {
  /** @internal */
  override read<T>(limit: CompiledLimit, reading: FeatureReading<T>): T {
    return readsOtherwise(this, MemoryStore.prototype, reading) ? reading.elsewhere(this) : super.read(limit, reading);
  }

  /** The units that a counter of a limit with `usage` was charged, by the days that overlap the range and are kept. */
  usage(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    return unitsOf(this.counted, counter, range);
  }

  /** The same for all keys of such a limit with any units, in pages of about `batch` keys. */
  usageOf(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor?: (identity: string) => CompiledLimit,
  ): AsyncIterable<KeyDays[]> {
    return pagesOf(this.counted, limit, range, batch, limitFor);
  }

  /** What this store itself has counted, whatever a class of the app's overrides. */
  private get counted(): ReadableStore {
    return { read: (limit, reading) => super.read(limit, reading) };
  }
}

/** Counters on Redis, with all that apps may ask of a store: a store of an app that wraps this one hands its calls on. */
export class RedisStore extends CountsOnRedis {
  /** @internal */
  override read<T>(limit: CompiledLimit, reading: FeatureReading<T>): T {
    return readsOtherwise(this, RedisStore.prototype, reading) ? reading.elsewhere(this) : super.read(limit, reading);
  }

  /** The units that a counter of a limit with `usage` was charged, by the days that overlap the range and are kept. */
  usage(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    return unitsOf(this.counted, counter, range);
  }

  /** The same for all keys of such a limit with any units, in pages of about `batch` keys. */
  usageOf(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor?: (identity: string) => CompiledLimit,
  ): AsyncIterable<KeyDays[]> {
    return pagesOf(this.counted, limit, range, batch, limitFor);
  }

  /** What this store itself has counted, whatever a class of the app's overrides. */
  private get counted(): ReadableStore {
    return { read: (limit, reading) => super.read(limit, reading) };
  }
}

/** Whether a class of the app's overrides the method of ours that reads it. */
function readsOtherwise(store: object, ours: object, { name }: FeatureReading<unknown>): boolean {
  const method = name as keyof object;
  return store[method] !== ours[method];
}
