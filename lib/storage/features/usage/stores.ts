import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { plainIdentity } from '../../../engine/limits/identity.js';
import { type MemoryParts, read, type ReadableStore } from '../../stores/feature-reading.js';
import {
  correctDay,
  type DayUnits,
  type KeyDays,
  namedUnits,
  type NamedUnits,
  type Recorded,
  type TimeRange,
} from './range.js';
import { limitUsageOf, usageRecords } from './limit-usage.js';
import { argumentError, RateLimitArgumentError } from '../../../engine/errors/errors.js';
import type { Store } from '../../stores/store.js';
import { usageMessages } from './messages.js';
import { RedisUsageReader } from './redis-reader.js';

/** The record of a counter in process, without units of lapsed holds. */
function recordedInMemory(parts: MemoryParts, counter: Counter, range: TimeRange): Recorded {
  const usage = limitUsageOf(counter.limit)!;
  const records = parts.kept(usageRecords);
  const now = parts.now();
  const days = withoutLapsed(parts, counter, records.days(usage, counter.identity, now));
  const units = namedUnits(usage.recording, range, days, now);
  return { units, leftOut: units.length === 0 && records.hasLeftOut(usage) };
}

/** Days without the units of lapsed holds. The next check subtracts these from the record. */
function withoutLapsed(parts: MemoryParts, counter: Counter, recorded: readonly DayUnits[]): readonly DayUnits[] {
  if (counter.limit.estimates === undefined) return recorded;
  const { corrections } = parts.open(counter);
  if (corrections === undefined) return recorded;
  const days = recorded.map((day) => ({ ...day }));
  for (const { difference, chargedAt } of corrections) correctDay(days, chargedAt!, difference);
  return days;
}

/** The units of all keys of a limit. */
async function* pagesInMemory(
  parts: MemoryParts,
  limit: CompiledLimit,
  range: TimeRange,
  batch: number,
  limitFor = (_identity: string) => limit,
): AsyncIterable<KeyDays[]> {
  const usage = limitUsageOf(limit)!;
  const records = parts.kept(usageRecords);
  let page: KeyDays[] = [];
  for (const { key, days: recorded } of records.keys(usage, parts.now())) {
    // A long or unusual key is stored as a hash, which doesn't reveal it.
    const isKnown = plainIdentity(key) === key;
    const charged = isKnown ? withoutLapsed(parts, { limit: limitFor(key), identity: key }, recorded) : recorded;
    const days = namedUnits(usage.recording, range, charged, parts.now());
    if (days.length === 0) continue;
    page.push({ key, days });
    if (page.length < batch) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
  if (records.hasLeftOut(usage)) usage.warnOfLeftOut();
}

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

/** The record of a counter; `undefined` if an app's store has none. The range may depend on the store's time, in microseconds. */
export function recordOf(
  store: ReadableStore,
  counter: Counter,
  rangeAt: (now: number) => TimeRange,
): Promise<Recorded | undefined> {
  return read<Promise<Recorded | undefined>>(store, counter.limit, {
    name: 'usage',
    counter,
    inMemory: async (parts) => recordedInMemory(parts, counter, rangeAt(parts.now())),
    onRedis: (parts) => new RedisUsageReader(parts).recorded(counter, rangeAt(parts.now())),
    elsewhere: async (own: Store) => {
      const units = await own.usage?.(counter, rangeAt(Date.now() * 1000));
      return units && { units, leftOut: false };
    },
  });
}

/** The units of a counter per day of a range. */
export async function unitsOf(store: ReadableStore, counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
  const { limit } = counter;
  const found = await recordOf(store, counter, () => range);
  if (found === undefined) throw noStore(limit);
  if (found.leftOut) limitUsageOf(limit)!.warnOfLeftOut();
  return [...found.units];
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
      if (own.usageOf === undefined) throw noStore(limit);
      return own.usageOf(limit, range, batch, limitFor);
    },
  });
}

function noStore({ name }: CompiledLimit): RateLimitArgumentError {
  return argumentError('SLUICE_UNSUPPORTED_CALL', usageMessages.noStore(name));
}
