import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { Counter } from '../../limits/counter.js';
import { plainIdentity } from '../../limits/identity.js';
import { type KeyDays, namedUnits, type NamedUnits, type TimeRange } from '../../limits/usage-range.js';
import { warnOfLeftOut } from '../usage-left-out.js';
import type { CounterTable } from './counter-table.js';
import { viewOf } from './counter-view.js';
import type { Counters } from './counters.js';
import type { UsageRecords } from './usage-records.js';

/** Reads what limits with `usage` were charged, without the units of holds that have lapsed. */
export class UsageReader {
  constructor(
    private readonly table: CounterTable,
    private readonly counters: Counters,
    private readonly records: UsageRecords,
    private readonly clock: () => number,
  ) {}

  /** The units of a counter by the days of a range. */
  units(counter: Counter, range: TimeRange): NamedUnits[] {
    const now = this.clock();
    releaseAllLapsed(this.table, this.counters, counter, now);
    const units = namedUnits(counter.limit.usage!, range, this.records.days(counter, now), now);
    if (units.length === 0) this.tellLeftOut(counter.limit);
    return units;
  }

  /** The units of all keys of a limit. */
  async *pages(
    limit: CompiledLimit,
    range: TimeRange,
    batch: number,
    limitFor = (_identity: string) => limit,
  ): AsyncIterable<KeyDays[]> {
    let page: KeyDays[] = [];
    for (const { key, days: recorded } of this.records.keys(limit, this.clock())) {
      // What stands for a key that is long or odd does not tell the key.
      if (plainIdentity(key) === key) {
        releaseAllLapsed(this.table, this.counters, { limit: limitFor(key), identity: key }, this.clock());
      }
      const days = namedUnits(limit.usage!, range, recorded, this.clock());
      if (days.length === 0) continue;
      page.push({ key, days });
      if (page.length < batch) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
    this.tellLeftOut(limit);
  }

  private tellLeftOut(limit: CompiledLimit): void {
    if (this.records.hasLeftOut(limit)) warnOfLeftOut(limit);
  }
}

/** Units of holds that have lapsed come off a counter, some of them at a time. */
export function releaseAllLapsed(table: CounterTable, counters: Counters, counter: Counter, now: number): void {
  if (counter.limit.hold === undefined) return;
  for (let view; (view = viewOf(table, counter, now)).lapsed.length > 0;) counters.store(view);
}
