import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { ReturnedUnits } from '../../../engine/limits/estimates.js';
import { plainIdentity } from '../../../engine/limits/identity.js';
import { readWholeNumber } from '../../redis/whole-number.js';
import type { RedisParts } from '../../stores/feature-reading.js';
import { hashTagOf, keyOf } from '../../stores/redis/keys.js';
import { slotTags, tagBeside } from '../../stores/redis/slot-tags.js';
import { correctDay, type DayUnits } from './days.js';
import { LEFT_OUT } from './index-bound.js';
import { limitUsageOf, type LimitUsage } from './limit-usage.js';
import { usageMessages } from './messages.js';
import { earliestStart, type KeyDays, namedUnits, type NamedUnits, type Recorded, type TimeRange } from './range.js';

/** The most commands to have in flight at once. */
const AT_ONCE = 256;
/** Days that may be recorded beyond one for each day: of another time zone, or ahead of our clock. */
const SPARE_DAYS = 4;
const DAY_SECONDS = 86_400;

/** Returns the limit of a key, which may have a rate of its own. */
type LimitFor = (identity: string) => CompiledLimit;

/** Reads what limits with `usage` have charged. `lua/features/usage.lua` documents what is stored. */
export class RedisUsageReader {
  constructor(private readonly parts: RedisParts) {}

  /** The units of a counter by the days of a range. */
  async units(counter: Counter, range: TimeRange): Promise<NamedUnits[]> {
    await this.parts.releaseLapsed([counter]);
    const { units, leftOut } = await this.recorded(counter, range, async () => []);
    if (leftOut) limitUsageOf(counter.limit)!.warnOfLeftOut();
    return [...units];
  }

  /** The same without a change on Redis: units of holds that have lapsed are only deducted here. */
  look(counter: Counter, range: TimeRange): Promise<Recorded> {
    return this.recorded(counter, range, () => this.lapsed(counter));
  }

  /** The same, with whether the counter may be one that is not recorded. */
  private async recorded(
    counter: Counter,
    range: TimeRange,
    lapsed: () => Promise<readonly ReturnedUnits[]>,
  ): Promise<Recorded> {
    const usage = limitUsageOf(counter.limit)!;
    const tag = hashTagOf(counter);
    const { recording } = usage;
    const now = this.parts.now();
    const [days = []] = await this.daysOf(usage, [tag], range, now);
    // Read later than the days: what is taken off them meanwhile must not come off twice.
    for (const { units, chargedAt } of await lapsed()) correctDay(days, chargedAt, -units);
    const units = namedUnits(recording, range, days, now);
    const mayBeLeftOut = units.length === 0 && recording.maxKeys !== undefined;
    return { units, leftOut: mayBeLeftOut && (await this.hasLeftOut(usage, tag)) };
  }

  /**
   * The units of all keys of a limit. Each key is in one shard of the index, and each shard is read once and as a whole: so no
   * key comes twice, and none is missed that was there all the time.
   */
  async *pages(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor: LimitFor = () => limit,
  ): AsyncIterable<KeyDays[]> {
    const { client, prefix } = this.parts;
    const usage = limitUsageOf(limit)!;
    const earliest = earliestStart(usage.recording, range, this.parts.now());
    const shards = slotTags().map((tag) => usage.indexKey(prefix, tag));
    const step = Math.min(AT_ONCE, batch);
    let found: string[] = [];
    let isComplete = true;
    for (let at = 0; at < shards.length; at += step) {
      const keys = await this.all(shards.slice(at, at + step), (shard) =>
        client.zrangebyscore(shard, earliest, '+inf'),
      );
      for (const key of keys.flat()) {
        if (key === LEFT_OUT) isComplete = false;
        else found.push(key);
      }
      for (; found.length >= batch; found = found.slice(batch)) {
        yield await this.pageOf(limit, found.slice(0, batch), range, limitFor);
      }
    }
    yield await this.pageOf(limit, found, range, limitFor);
    if (!isComplete) usage.warnOfLeftOut();
  }

  private async lapsed(counter: Counter): Promise<readonly ReturnedUnits[]> {
    const { estimates } = counter.limit;
    if (estimates === undefined) return [];
    const { client, prefix } = this.parts;
    return this.parts.guarded(async () => estimates.lapsed(client, keyOf(prefix, counter), await this.parts.time()));
  }

  private async hasLeftOut(usage: LimitUsage, tag: string): Promise<boolean> {
    const { client, prefix } = this.parts;
    const index = usage.indexKey(prefix, tagBeside(tag));
    return (await this.parts.guarded(() => client.zscore(index, LEFT_OUT))) !== null;
  }

  private async pageOf(
    limit: CompiledLimit,
    keys: readonly string[],
    range: TimeRange,
    limitFor: LimitFor,
  ): Promise<KeyDays[]> {
    // A long or odd key is stored as a hash, which does not reveal it.
    const known = limit.estimates === undefined ? [] : keys.filter((key) => plainIdentity(key) === key);
    for (let at = 0; at < known.length; at += AT_ONCE) {
      const counters = known.slice(at, at + AT_ONCE).map((identity) => ({ limit: limitFor(identity), identity }));
      await this.parts.releaseLapsed(counters);
    }
    const units = await this.unitsOf(limitUsageOf(limit)!, keys, range);
    return keys.map((key, index) => ({ key, days: units[index]! })).filter(({ days }) => days.length > 0);
  }

  private async unitsOf(usage: LimitUsage, keys: readonly string[], range: TimeRange): Promise<NamedUnits[][]> {
    const now = this.parts.now();
    const found = await this.daysOf(usage, keys, range, now);
    return found.map((days) => namedUnits(usage.recording, range, days, now));
  }

  private async daysOf(
    usage: LimitUsage,
    keys: readonly string[],
    range: TimeRange,
    now: number,
  ): Promise<DayUnits[][]> {
    const since = earliestStart(usage.recording, range, now);
    const last = Math.max(0, Math.ceil((now / 1e6 - since) / DAY_SECONDS)) + SPARE_DAYS;
    const found: DayUnits[][] = [];
    for (let at = 0; at < keys.length; at += AT_ONCE) {
      const recorded = await this.all(keys.slice(at, at + AT_ONCE), (key) =>
        this.daysSince(usage.recordKey(this.parts.prefix, key), since, last),
      );
      found.push(...recorded);
    }
    return found;
  }

  /** A record is read from its end: most invoices cover the last of many days. */
  private async daysSince(key: string, since: number, last: number): Promise<DayUnits[]> {
    const { client } = this.parts;
    const days = readDays(key, await client.lrange(key, -2 * last, -1));
    const isEnough = days.length < last || days[0]!.start < since;
    return isEnough ? days : readDays(key, await client.lrange(key, 0, -1));
  }

  /** Asks for all of them at once, within one deadline. */
  private all<K, T>(keys: readonly K[], ask: (key: K) => Promise<T>): Promise<T[]> {
    return this.parts.guarded(() => Promise.all(keys.map(ask)));
  }
}

function readDays(key: string, values: readonly unknown[]): DayUnits[] {
  const days: DayUnits[] = [];
  for (let i = 0; i < values.length; i += 2) {
    const start = readWholeNumber(values[i]);
    const units = readWholeNumber(values[i + 1]);
    if (start === undefined || units === undefined)
      throw new RateLimitStoreError(usageMessages.wrongReply(key, values));
    days.push({ start, units });
  }
  return days;
}
