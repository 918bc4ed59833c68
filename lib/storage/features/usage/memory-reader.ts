import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import { plainIdentity } from '../../../engine/limits/identity.js';
import type { MemoryParts } from '../../stores/feature-reading.js';
import { correctDay, type DayUnits } from './days.js';
import { limitUsageOf, usageRecords } from './limit-usage.js';
import { type KeyDays, namedUnits, type NamedUnits, type Recorded, type TimeRange } from './range.js';

/** The units of a counter per day of a range, without units of lapsed holds. */
export function unitsInMemory(parts: MemoryParts, counter: Counter, range: TimeRange): NamedUnits[] {
  const { units, leftOut } = recordedInMemory(parts, counter, range);
  if (leftOut) limitUsageOf(counter.limit)!.warnOfLeftOut();
  return [...units];
}

/** The same, and if the counter may have been left out of the records. */
export function recordedInMemory(parts: MemoryParts, counter: Counter, range: TimeRange): Recorded {
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
