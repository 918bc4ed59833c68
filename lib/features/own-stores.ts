import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { Counter } from '../limits/counter.js';
import { MemoryStore as CountsInMemory } from '../stores/memory/memory.store.js';
import { RedisStore as CountsOnRedis } from '../stores/redis/redis.store.js';
import type { KeyDays, NamedUnits, TimeRange } from './usage/range.js';
import { pagesOf, unitsOf } from './usage/stores.js';

/** Counters in process, with all that apps may ask of a store: a store of an app that wraps this one hands its calls on. */
export class MemoryStore extends CountsInMemory {
  /** The units that a counter of a limit with `usage` was charged, by the days that overlap the range and are kept. */
  usage(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    return unitsOf(this, counter, range);
  }

  /** The same for all keys of such a limit with any units, in pages of about `batch` keys. */
  usageOf(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor?: (identity: string) => CompiledLimit,
  ): AsyncIterable<KeyDays[]> {
    return pagesOf(this, limit, range, batch, limitFor);
  }
}

/** Counters on Redis, with all that apps may ask of a store: a store of an app that wraps this one hands its calls on. */
export class RedisStore extends CountsOnRedis {
  /** The units that a counter of a limit with `usage` was charged, by the days that overlap the range and are kept. */
  usage(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    return unitsOf(this, counter, range);
  }

  /** The same for all keys of such a limit with any units, in pages of about `batch` keys. */
  usageOf(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor?: (identity: string) => CompiledLimit,
  ): AsyncIterable<KeyDays[]> {
    return pagesOf(this, limit, range, batch, limitFor);
  }
}
