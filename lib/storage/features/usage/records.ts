import { plainIdentity } from '../../../engine/limits/identity.js';
import type { Correction } from '../../../engine/limits/estimates.js';
import type { KeptInMemory } from '../../../engine/limits/limit-feature.js';
import { Kept, RecencyList } from '../../../engine/util/recency-list.js';
import { chargeDay, correctDay, type DayUnits, forgetDays, giveBack, LONGEST_DAY, type UsageDays } from './range.js';
import type { UsageRecording } from './terms.js';

/** The limit of a record. */
interface RecordedLimit {
  readonly recordId: string;
  readonly recording: UsageRecording;
}

/** The charges of a counter per day. */
class Record extends Kept {
  readonly days: UsageDays = [];
  /** When its last day is no longer kept, in microseconds. */
  expiresAt = 0;

  constructor(
    key: string,
    /** The map that lists it. */
    readonly home: Map<string, Record>,
  ) {
    super(key);
  }
}

const RECORD_BYTES = 300;
const DAY_BYTES = 40;
/** When a record is created, this many of the records that changed longest ago are examined, and removed if they have expired. */
const LOOKED_AT = 2;

/** The charges of the counters of a process per day. Their number is limited: the records that changed longest ago are evicted first. */
export class UsageRecords implements KeptInMemory {
  /** By record id of the limit. */
  private readonly limits = new Map<string, Map<string, Record>>();
  private readonly order: RecencyList<Record>;
  /** By record id of limits for which keys were left out: none of their records expires before that time. */
  private readonly leftOut = new Map<string, number>();

  constructor(maxKeys: number, maxBytes: number) {
    this.order = new RecencyList(maxKeys, maxBytes, ({ home, key }) => home.delete(key));
  }

  /** Adds units that a counter is charged now. */
  charge(limit: RecordedLimit, identity: string, units: number, now: number): void {
    const { keep, days } = limit.recording;
    const start = days.windowAt(now).start / 1e6;
    const key = plainIdentity(identity);
    const known = this.find(limit, key, now);
    if (known === undefined && this.isFull(limit, now)) return;
    const record = known ?? this.add(limit.recordId, key, now);
    const before = record.days.length;
    chargeDay(record.days, start, units);
    if (record.days.length === before) {
      this.order.touch(record);
      return;
    }
    forgetDays(record.days, now, keep);
    record.expiresAt = (record.days.at(-1)!.start + LONGEST_DAY) * 1e6 + keep;
    this.order.put(record, RECORD_BYTES + 2 * key.length + DAY_BYTES * record.days.length, false);
  }

  /** Returns true if keys of a limit were left out because it has too many. */
  hasLeftOut({ recordId }: RecordedLimit): boolean {
    return this.leftOut.has(recordId);
  }

  /**
   * Returns true if a key without a record has to be left out. All records are examined only after the first of them may have expired,
   * about once per day.
   */
  private isFull({ recordId, recording }: RecordedLimit, now: number): boolean {
    const home = this.limits.get(recordId);
    const { maxKeys = Infinity } = recording;
    if (home === undefined || home.size < maxKeys) return false;
    if (now < (this.leftOut.get(recordId) ?? 0)) return true;
    let first = Infinity;
    for (const record of home.values()) {
      if (record.expiresAt <= now) this.delete(record);
      else first = Math.min(first, record.expiresAt);
    }
    if (home.size < maxKeys) return false;
    this.leftOut.set(recordId, first);
    return true;
  }

  /** Corrects an earlier charge of a counter. */
  correct(limit: RecordedLimit, identity: string, { difference, chargedAt }: Correction, now: number): void {
    const record = this.find(limit, plainIdentity(identity), now);
    if (record === undefined) return;
    if (chargedAt === undefined) giveBack(record.days, -difference);
    else correctDay(record.days, chargedAt, difference);
  }

  /** The days of a counter, the oldest first. */
  days(limit: RecordedLimit, identity: string, now: number): readonly DayUnits[] {
    return this.find(limit, plainIdentity(identity), now)?.days ?? [];
  }

  /** All keys of a limit and their days. Keys that are added during the iteration may be included. */
  *keys({ recordId }: RecordedLimit, now: number): IterableIterator<{ key: string; days: readonly DayUnits[] }> {
    for (const record of this.limits.get(recordId)?.values() ?? []) {
      if (record.expiresAt > now) yield record;
    }
  }

  clear(): void {
    this.limits.clear();
    this.leftOut.clear();
    this.order.clear();
  }

  private find({ recordId }: RecordedLimit, key: string, now: number): Record | undefined {
    const record = this.limits.get(recordId)?.get(key);
    return record !== undefined && record.expiresAt > now ? record : undefined;
  }

  private add(recordId: string, key: string, now: number): Record {
    let home = this.limits.get(recordId);
    if (home === undefined) this.limits.set(recordId, (home = new Map()));
    const over = home.get(key);
    if (over !== undefined) this.delete(over);
    let looked = 0;
    for (const record of home.values()) {
      if (looked++ === LOOKED_AT) break;
      if (record.expiresAt <= now) this.delete(record);
    }
    const record = new Record(key, home);
    home.set(key, record);
    return record;
  }

  private delete(record: Record): void {
    this.order.remove(record);
    record.home.delete(record.key);
  }
}
