import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { DemandSampler, type DemandWindow } from './demand-sampler.js';
import { KeyBudget, SpaceSaving, type Summary } from './space-saving.js';
import { NotedKeys } from './noted-keys.js';
import {
  KeyCounts,
  namesOf,
  type PublishedKey,
  type PublishedLimit,
  type PublishedLimits,
  type TopKeyCounts,
} from './top-keys.js';
import { Tally } from './tally.js';

/** Maximum number of limits that are viewed at the same time. */
const MOST_WATCHED = 50;
/** The counters for the used units of a viewed limit. */
const USED = { open: () => new SpaceSaving(256), close: () => undefined };
/** Counts cover the last one to two periods of this length. */
const PERIOD_MS = 300_000;
/** The number of keys per list that are remembered after a period, and published for a viewed limit. */
const KEPT = 50;
/** The number of keys that are published for a limit that rejects, and the maximum number of such limits. */
const OF_REFUSING = 10;
const MOST_REFUSING = 50;
/** A limit with fewer rejections is only published if it is viewed. */
const FEW_REFUSALS = 10;
/** Maximum number of characters to publish at a time. */
const MOST_PUBLISHED = 65_536;

/** Counts the rejected keys of all limits, or only of viewed limits. */
export class WatchedLimits {
  readonly tally: Tally;
  readonly demand = new DemandSampler((label) => this.watched.has(label));
  /** The keys that are blocked or hold units. */
  readonly noted: NotedKeys;
  private readonly counts = new Map<string, TopKeyCounts>();
  private readonly budget = new KeyBudget();
  /** When viewing ends, by label. */
  private watched = new Map<string, number>();
  private readonly startedAt: number;
  private period: { since: number; before: number | undefined };

  /**
   * @param always true to count the rejected keys of all limits
   * @param isDeclared returns true for the label of a declared limit
   */
  constructor(
    labelOf: (limit: CompiledLimit) => string | undefined,
    private readonly always: boolean,
    private readonly now: () => number,
    readonly isDeclared: (label: string) => boolean = () => false,
  ) {
    this.noted = new NotedKeys(now);
    this.tally = new Tally(labelOf, this);
    this.startedAt = now();
    this.period = { since: this.startedAt, before: undefined };
  }

  get isWatched(): boolean {
    return this.watched.size > 0;
  }

  /** Records that somebody views the keys of a limit until `until`. */
  watch(label: string, until: number): void {
    this.watched.set(label, Math.max(until, this.watched.get(label) ?? 0));
    this.turn();
  }

  /** Called once per second: stops counting for limits that nobody views any more. */
  turn(): void {
    const now = this.now();
    this.budget.turn();
    this.watched = new Map([...this.watched].filter(([, until]) => until > now).slice(0, MOST_WATCHED));
    if (now - this.period.since >= PERIOD_MS) this.turnPeriod(now);
    for (const [label, counts] of this.counts) {
      if (this.watched.has(label)) continue;
      counts.used = undefined;
      if (this.always) continue;
      counts.refused.close();
      this.counts.delete(label);
    }
    for (const label of this.watched.keys()) this.countsOf(label, now).used ??= new KeyCounts(USED, now);
    this.tally.watch();
  }

  /** The rejected and used keys of a limit, in the published form. */
  of(label: string, most = KEPT): PublishedLimit {
    const { refused, used } = this.counts.get(label) ?? {};
    return [
      label,
      this.since(refused?.since ?? (this.always ? this.startedAt : this.now())),
      ...this.named(refused, most),
      ...this.named(used, most),
      used === undefined ? null : this.since(used.since),
    ];
  }

  /** The data to publish to the other instances: the viewed limits, and those that reject the most. */
  published(): PublishedLimits {
    const refusing = [...this.counts]
      .filter(([label, { refused }]) => !this.watched.has(label) && refused.total >= FEW_REFUSALS)
      .toSorted(([, one], [, other]) => other.refused.total - one.refused.total)
      .slice(0, MOST_REFUSING);
    const limits: PublishedLimit[] = [];
    let length = 0;
    for (const label of [...this.watched.keys(), ...refusing.map(([each]) => each)]) {
      const limit = this.of(label, this.watched.has(label) ? KEPT : OF_REFUSING);
      length += JSON.stringify(limit).length;
      if (length > MOST_PUBLISHED) break;
      limits.push(limit);
    }
    return limits;
  }

  private turnPeriod(now: number): void {
    this.period = { since: now, before: this.period.since };
    for (const { refused, used } of this.counts.values()) {
      refused.turn(KEPT);
      used?.turn(KEPT);
    }
  }

  /** When counting began, or the start of the remembered periods, whichever is later. */
  private since(begun: number): number {
    return Math.round(Math.max(begun, this.period.before ?? this.period.since));
  }

  private named(counts: KeyCounts | undefined, most: number): [PublishedKey[], number] {
    const { frequent, floor }: Summary = counts?.summary(most) ?? { frequent: [], floor: 0 };
    const keys = frequent.map(({ key, count, error }): PublishedKey => {
      const { id, identity } = namesOf(key);
      return identity === undefined ? [id, count, error] : [id, count, error, identity];
    });
    return [keys, floor];
  }

  keysOf(label: string): TopKeyCounts | undefined {
    return this.always ? this.countsOf(label, this.startedAt) : this.counts.get(label);
  }

  demandOf(label: string, limit: CompiledLimit): DemandWindow | undefined {
    return this.always || this.watched.has(label) ? this.demand.windowOf(label, limit, this.now()) : undefined;
  }

  private countsOf(label: string, since: number): TopKeyCounts {
    let counts = this.counts.get(label);
    if (counts === undefined) {
      counts = { refused: new KeyCounts(this.budget, this.always ? this.startedAt : since), used: undefined };
      this.counts.set(label, counts);
    }
    return counts;
  }
}
