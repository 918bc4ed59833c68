import type { Counter } from '../../../engine/limits/counter.js';
import type { RecentUsage } from '../../../engine/limits/recent-usage.js';
import { zoneNamed } from '../../../engine/util/time-zone.js';
import { read, type ReadableStore } from '../../stores/feature-reading.js';
import type { Store } from '../../stores/store.js';
import { limitUsageOf } from './limit-usage.js';
import { recordedInMemory } from './memory-reader.js';
import type { Recorded, TimeRange } from './range.js';
import { RedisUsageReader } from './redis-reader.js';
import { ownUnitsOf } from './stores.js';
import type { UsageRecording } from './terms.js';

/** How many days to show, today included. */
const DAYS = 30;
const DAY_MS = 86_400_000;

/** What a counter was charged lately; `undefined` if the store records nothing. */
export async function recentUsageOf(store: ReadableStore, counter: Counter): Promise<RecentUsage | undefined> {
  const { limit } = counter;
  const { recording } = limitUsageOf(limit)!;
  return read<Promise<RecentUsage | undefined>>(store, limit, {
    name: 'usage',
    counter,
    inMemory: (parts) => recent(recording, parts.now(), async (range) => recordedInMemory(parts, counter, range)),
    onRedis: (parts) => recent(recording, parts.now(), (range) => new RedisUsageReader(parts).recorded(counter, range)),
    elsewhere: (own: Store) =>
      recent(recording, Date.now() * 1000, async (range) => {
        const units = await ownUnitsOf(own, counter, range);
        return units && { units, leftOut: false };
      }),
  });
}

/** Reads the last days, as far as they are kept. */
async function recent(
  { days, keep, timezone }: UsageRecording,
  now: number,
  readRange: (range: TimeRange) => Promise<Recorded | undefined>,
): Promise<RecentUsage | undefined> {
  const zone = zoneNamed(timezone);
  const startOf = (micros: number) => days.windowAt(micros).start / 1000;
  const earliest = zone.instantOf(zone.localTime(startOf(now)) - (DAYS - 1) * DAY_MS);
  const since = Math.max(earliest, startOf(now - keep));
  const found = await readRange({ from: since * 1000, to: Infinity });
  if (found === undefined) return undefined;
  const { units, leftOut } = found;
  return { timezone, since: zone.dateAt(since), days: units, ...(leftOut && { leftOut }) };
}
