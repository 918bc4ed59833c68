import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Counter } from '../../../engine/limits/counter.js';
import type { Estimates } from '../../../engine/limits/estimates.js';
import { plainIdentity } from '../../../engine/limits/identity.js';
import { readWholeNumber } from '../../redis/errors.js';
import type { RedisParts } from '../../stores/feature-reading.js';
import { hashTagOf, keyOf } from '../../stores/redis/keys.js';
import { slotTags, tagBeside } from '../../stores/redis/slots.js';
import {
  correctDay,
  type DayUnits,
  earliestStart,
  type KeyDays,
  namedUnits,
  type Recorded,
  type TimeRange,
} from './range.js';
import { LEFT_OUT, type LimitUsage, limitUsageOf } from './limit-usage.js';
import { usageMessages } from './messages.js';

/** Maximum number of commands in flight at a time. */
const AT_ONCE = 256;
/** The number of days that may be recorded in addition to one per day: of another time zone, or ahead of the local clock. */
const SPARE_DAYS = 4;
const DAY_SECONDS = 86_400;

/** Returns the limit of a key, which may have a rate of its own. */
type LimitFor = (identity: string) => CompiledLimit;

/** Maximum number of lapsed holds to read at a time. */
const HOLDS_AT_ONCE = 1000;

/** A record to read, and its counter, unless its key is a hash. */
interface RecordedCounter {
  readonly tag: string;
  readonly counter?: Counter | undefined;
}

/** The lapsed holds of a counter: a range of a sorted set, and their number. */
interface LapsedHolds {
  readonly key: string;
  readonly range: readonly [string, string];
  readonly count: number;
  readonly estimates: Estimates;
}

/**
 * Reads the charges of limits with `usage`. `lua/features/usage.lua` documents the stored data. Reading changes nothing: units of lapsed
 * holds are subtracted here.
 */
export class RedisUsageReader {
  constructor(private readonly parts: RedisParts) {}

  /** The units of a counter per day of a range, and true in `leftOut` if the records may lack this counter. */
  async recorded(counter: Counter, range: TimeRange): Promise<Recorded> {
    const usage = limitUsageOf(counter.limit)!;
    const tag = hashTagOf(counter);
    const { recording } = usage;
    const now = this.parts.now();
    const [days = []] = await this.daysOf(usage, [{ tag, counter }], range, now);
    const units = namedUnits(recording, range, days, now);
    const mayBeLeftOut = units.length === 0 && recording.maxKeys !== undefined;
    return { units, leftOut: mayBeLeftOut && (await this.hasLeftOut(usage, tag)) };
  }

  /**
   * The units of all keys of a limit. Each key is in one shard of the index, and each shard is read once as a whole. So no key comes twice,
   * and no key that exists all the time is missed.
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
    let found: string[] = [];
    let isComplete = true;
    for (let at = 0; at < shards.length; at += AT_ONCE) {
      const keys = await this.all(shards.slice(at, at + AT_ONCE), (shard) =>
        client.zrangebyscore(shard, earliest, '+inf'),
      );
      for (const key of keys.flat()) {
        if (key === LEFT_OUT) isComplete = false;
        else found.push(key);
      }
      let first = 0;
      for (; found.length - first >= batch; first += batch) {
        yield await this.pageOf(limit, found.slice(first, first + batch), range, limitFor);
      }
      found = found.slice(first);
    }
    yield await this.pageOf(limit, found, range, limitFor);
    if (!isComplete) usage.warnOfLeftOut();
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
    const counters = keys.map((key): RecordedCounter => {
      // A long or unusual key is stored as a hash, which doesn't reveal it.
      const isKnown = limit.estimates !== undefined && plainIdentity(key) === key;
      return { tag: key, counter: isKnown ? { limit: limitFor(key), identity: key } : undefined };
    });
    const usage = limitUsageOf(limit)!;
    const now = this.parts.now();
    const found = await this.daysOf(usage, counters, range, now);
    return keys
      .map((key, index) => ({ key, days: namedUnits(usage.recording, range, found[index]!, now) }))
      .filter(({ days }) => days.length > 0);
  }

  private async daysOf(
    usage: LimitUsage,
    counters: readonly RecordedCounter[],
    range: TimeRange,
    now: number,
  ): Promise<DayUnits[][]> {
    const since = earliestStart(usage.recording, range, now);
    const last = Math.max(0, Math.ceil((now / 1e6 - since) / DAY_SECONDS)) + SPARE_DAYS;
    const read = ({ tag }: RecordedCounter) => this.daysSince(usage.recordKey(this.parts.prefix, tag), since, last);
    const found: DayUnits[][] = [];
    for (let at = 0; at < counters.length; at += AT_ONCE) {
      const some = counters.slice(at, at + AT_ONCE);
      const lapsed = await this.lapsed(some);
      const days = new Map<RecordedCounter, DayUnits[]>();
      const others = some.filter((counter) => !lapsed.has(counter));
      for (const [index, each] of (await this.all(others, read)).entries()) days.set(others[index]!, each);
      await Promise.all(
        [...lapsed].map(async ([counter, until]) => days.set(counter, await this.without(until, () => read(counter)))),
      );
      found.push(...some.map((counter) => days.get(counter)!));
    }
    return found;
  }

  /** Those counters with holds that have lapsed since their last check. */
  private async lapsed(counters: readonly RecordedCounter[]): Promise<Map<RecordedCounter, LapsedHolds>> {
    const holding = counters.filter(({ counter }) => counter?.limit.estimates !== undefined);
    if (holding.length === 0) return new Map();
    const { client, prefix } = this.parts;
    const keys = holding.map(({ counter }) => counter!.limit.estimates!.setOf(keyOf(prefix, counter!)));
    const [now, unreleased] = await this.parts.guarded(() =>
      Promise.all([this.parts.time(), Promise.all(keys.map((key) => client.zcount(key, '(0', '+inf')))]),
    );
    const range = ['(0', String(now)] as const;
    const some = holding
      .map((counter, index) => ({ counter, key: keys[index]!, range, estimates: counter.counter!.limit.estimates! }))
      .filter((_, index) => unreleased[index]! > 0);
    const counts = await this.all(some, ({ key }) => client.zcount(key, ...range));
    const found = some.map(({ counter, ...holds }, index) => [counter, { ...holds, count: counts[index]! }] as const);
    return new Map(found.filter(([, { count }]) => count > 0));
  }

  /** Days without the units of lapsed holds. The next check subtracts these from the record. */
  private async without({ key, range, ...lapsed }: LapsedHolds, read: () => Promise<DayUnits[]>): Promise<DayUnits[]> {
    const { client } = this.parts;
    for (let { count } = lapsed; ;) {
      const members: string[] = [];
      while (members.length < count) {
        const page = ['LIMIT', members.length, HOLDS_AT_ONCE] as const;
        const some = await this.parts.guarded(() => client.zrangebyscore(key, ...range, ...page));
        if (some.length === 0) break;
        members.push(...some);
      }
      const days = await this.parts.guarded(read);
      // Checks only remove some of the holds. As long as their number is unchanged, no units were subtracted from the record.
      const left = await this.parts.guarded(() => client.zcount(key, ...range));
      if (left === count) {
        for (const member of members) {
          const returned = lapsed.estimates.returnedBy(member);
          if (returned !== undefined) correctDay(days, returned.chargedAt, -returned.units);
        }
        return days;
      }
      count = left;
    }
  }

  /** A record is read from its end, since most invoices cover the last of many days. */
  private async daysSince(key: string, since: number, last: number): Promise<DayUnits[]> {
    const { client } = this.parts;
    const days = readDays(key, await client.lrange(key, -2 * last, -1));
    const isEnough = days.length < last || days[0]!.start < since;
    return isEnough ? days : readDays(key, await client.lrange(key, 0, -1));
  }

  /** Makes all calls at once, within one deadline. */
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
