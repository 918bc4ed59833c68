import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Counter } from '../../engine/limits/counter.js';
import { type FeatureReading, READ, type ReadableStore } from '../stores/feature-reading.js';
import { MemoryStore as CountsInMemory } from '../stores/memory/memory.store.js';
import { RedisStore as CountsOnRedis } from '../stores/redis/redis.store.js';
import type { TimeRange } from './usage/range.js';
import { pagesOf, unitsOf, type WithStoredUsage } from './usage/stores.js';

// oxlint-disable-next-line typescript/no-explicit-any -- TypeScript requires it for a class that is extended.
type StoreClass = new (...args: any[]) => ReadableStore;

/** Adds the methods that features declare on `Store` to one of the library's stores, so that an app's store can extend or wrap it. */
function withMethods<Base extends StoreClass>(Counts: Base): WithStoredUsage<Base> {
  return class Own extends Counts {
    /** Calls the method of a feature if a subclass in the app overrides it. */
    override [READ]<T>(limit: CompiledLimit, reading: FeatureReading<T>): T {
      const method = reading.name as keyof Own;
      return this[method] === Own.prototype[method] ? super[READ]!(limit, reading) : reading.elsewhere(this);
    }

    usage(counter: Counter, range: TimeRange) {
      return unitsOf(this.counted, counter, range);
    }

    usageOf(limit: CompiledLimit, range: TimeRange, batch: number, limitFor?: (identity: string) => CompiledLimit) {
      return pagesOf(this.counted, limit, range, batch, limitFor);
    }

    /** The counts of this store itself, even if a subclass in the app overrides its methods. */
    get counted(): ReadableStore {
      return { [READ]: (limit, reading) => super[READ]!(limit, reading) };
    }
  };
}

/** Counts in process. An app's store may extend or wrap it. */
export class MemoryStore extends withMethods(CountsInMemory) {}

/** Counts on Redis. An app's store may extend or wrap it. */
export class RedisStore extends withMethods(CountsOnRedis) {}
