import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { read, type ReadableStore } from '../../stores/feature-reading.js';
import type { Store } from '../../stores/store.js';
import { pagesInMemory, unitsInMemory } from './memory-reader.js';
import { usageMessages } from './messages.js';
import type { KeyDays, NamedUnits, TimeRange } from './range.js';
import { RedisUsageReader } from './redis-reader.js';

declare module '../../stores/store.js' {
  // Methods that an app's store may have for limits with `usage`. Not a doc comment, since it would be added to that of `Store`.
  interface Store {
    /**
     * The units that a counter of a limit with `usage` was charged, per day of the range that is kept. Only days with units are included,
     * the oldest first.
     * @default usage is not recorded
     */
    usage?: StoredUsage['usage'];
    /**
     * The same for all keys of such a limit with any units, in pages of about `batch` keys. Each key comes only once. `limitFor` returns
     * the limit of a key that has another rate.
     * @default usage is not recorded
     */
    usageOf?: StoredUsage['usageOf'];
  }
}

/** Methods of the library's stores for limits with `usage`. */
export interface StoredUsage {
  /** The units that a counter of a limit with `usage` was charged, per day of the range that is kept. */
  usage(counter: Counter, range: TimeRange): Promise<NamedUnits[]>;
  /** The same for all keys of such a limit with any units, in pages of about `batch` keys. */
  usageOf(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor?: (identity: string) => CompiledLimit,
  ): AsyncIterable<KeyDays[]>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- TypeScript requires it for a class that is mixed in.
export type WithStoredUsage<Base> = Base & (new (...args: any[]) => StoredUsage);

/** The units of a counter per day of a range. */
export async function unitsOf(store: ReadableStore, counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
  const { limit } = counter;
  return read<Promise<NamedUnits[]>>(store, limit, {
    name: 'usage',
    counter,
    inMemory: async (parts) => unitsInMemory(parts, counter, range),
    onRedis: (parts) => new RedisUsageReader(parts).units(counter, range),
    elsewhere: (own: Store) => {
      const units = ownUnitsOf(own, counter, range);
      if (units === undefined)
        throw new RateLimitArgumentError(usageMessages.noStore(limit.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
      return units;
    },
  });
}

/** The same from an app's store; `undefined` if it records nothing. */
export function ownUnitsOf(own: Store, counter: Counter, range: TimeRange): Promise<NamedUnits[]> | undefined {
  return own.usage?.(counter, range);
}

/** The same for all keys of a limit, in pages of about `batch` keys. */
export function pagesOf(
  store: ReadableStore,
  limit: CompiledLimit,
  range: TimeRange,
  batch: number,
  limitFor?: (identity: string) => CompiledLimit,
): AsyncIterable<KeyDays[]> {
  return read<AsyncIterable<KeyDays[]>>(store, limit, {
    name: 'usageOf',
    inMemory: (parts) => pagesInMemory(parts, limit, range, batch, limitFor),
    onRedis: (parts) => new RedisUsageReader(parts).pages(limit, range, batch, limitFor),
    elsewhere: (own: Store) => {
      if (own.usageOf === undefined)
        throw new RateLimitArgumentError(usageMessages.noStore(limit.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
      return own.usageOf(limit, range, batch, limitFor);
    },
  });
}
