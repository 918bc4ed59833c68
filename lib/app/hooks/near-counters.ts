import type { CheckEntry } from '../../engine/limits/counter.js';
import type { StoreDecision } from '../../storage/stores/store.js';
import { type CounterUse, useOf } from '../../storage/telemetry/decision-event.js';

/** The most counters that are remembered; the ones that came near first are forgotten first. */
const MAX_COUNTERS = 10_000;

/** Use below this part of what is near makes a counter far again. */
const FAR = 0.5;

/** The counters that came near their limit, so that each is reported once. */
export class NearCounters {
  /** Until when each is not reported again, in milliseconds of the process's clock. */
  private readonly until = new Map<string, number>();

  /** `now`: the process's clock, in milliseconds. */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Whether to report a decision that took a counter near its limit. `cameNear`: whether this one took it there from below. */
  reports(entry: CheckEntry, decision: StoreDecision, cameNear: boolean): boolean {
    if (this.until.size === 0 && !cameNear) return false;
    const key = `${entry.limit.id} ${entry.identity}`;
    const until = this.until.get(key);
    if (until !== undefined && (isFar(useOf(entry, decision)) || until <= this.now())) this.until.delete(key);
    if (!cameNear || this.until.has(key)) return false;
    this.remember(key, this.now() + decision.resetAfterMs);
    return true;
  }

  private remember(key: string, until: number): void {
    if (this.until.size >= MAX_COUNTERS) this.until.delete(this.until.keys().next().value!);
    this.until.set(key, until);
  }
}

/** Whether little of a counter was used before a request. */
function isFar({ before, nearFrom }: CounterUse): boolean {
  return before < FAR * nearFrom;
}
