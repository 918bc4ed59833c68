import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { plainIdentity } from '../../../engine/limits/identity.js';
import type { MemoryParts } from '../../stores/feature-reading.js';
import { limitUsageOf, usageRecords } from './limit-usage.js';
import { type KeyDays, namedUnits, type NamedUnits, type Recorded, type TimeRange } from './range.js';

/** The units of a counter by the days of a range, without those of holds that have lapsed. */
export function unitsInMemory(parts: MemoryParts, counter: Counter, range: TimeRange): NamedUnits[] {
  const { units, leftOut } = recordedInMemory(parts, counter, range);
  if (leftOut) limitUsageOf(counter.limit)!.warnOfLeftOut();
  return [...units];
}

/** The same, with whether the counter may be one that is not recorded. */
export function recordedInMemory(parts: MemoryParts, counter: Counter, range: TimeRange): Recorded {
  const usage = limitUsageOf(counter.limit)!;
  const records = parts.kept(usageRecords);
  parts.releaseLapsed(counter);
  const now = parts.now();
  const units = namedUnits(usage.recording, range, records.days(usage, counter.identity, now), now);
  return { units, leftOut: units.length === 0 && records.hasLeftOut(usage) };
}

/** The units of all keys of a limit. */
export async function* pagesInMemory(
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
    // A long or odd key is stored as a hash, which does not reveal it.
    if (plainIdentity(key) === key) parts.releaseLapsed({ limit: limitFor(key), identity: key });
    const days = namedUnits(usage.recording, range, recorded, parts.now());
    if (days.length === 0) continue;
    page.push({ key, days });
    if (page.length < batch) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
  if (records.hasLeftOut(usage)) usage.warnOfLeftOut();
}
