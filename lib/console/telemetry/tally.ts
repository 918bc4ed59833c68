import { isRefusal } from '../../limits/check-result.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { CheckEntry } from '../../limits/counter.js';
import type { StoreDecision } from '../../stores/store.js';
import { becameNear } from '../../telemetry/decision-event.js';
import type { DecisionTap } from '../../telemetry/decision-tap.js';
import { type Bucket, type LimitCounts, noCheckCounts, noLimitCounts } from './bucket.js';
import { LatencyHistogram } from './latency-histogram.js';
import type { TopKeyCounts } from './top-keys.js';

/** One check of so many is timed: two looks at the clock would cost more than all else here. */
const TIMED_EVERY = 16;
/** The most labels that are told apart; what comes after them is counted together. */
const MOST_LABELS = 200;
/** Functions may make new limits for each request. */
const MOST_LIMITS = 1000;

/** The label of all limits that come after too many others. */
export const OTHERS = '(others)';

/** What is counted of a limit until the next second. */
interface Counted extends LimitCounts {
  readonly label: string;
  /** Who asks, while somebody wants to know. */
  keys: TopKeyCounts | undefined;
}

/** Counts the decisions of this instance between two seconds. */
export class Tally implements DecisionTap {
  private readonly byLabel = new Map<string, Counted>();
  private readonly byLimit = new Map<CompiledLimit, Counted | null>();
  private lastLimit: CompiledLimit | undefined;
  private lastCounted: Counted | null = null;
  private checks = noCheckCounts();
  private readonly latencies = new LatencyHistogram();
  private untimed = 0;

  /**
   * @param labelOf how a limit is called; `undefined` for one that is not shown
   * @param keysOf where the keys of a label are counted, if they are
   */
  constructor(
    private readonly labelOf: (limit: CompiledLimit) => string | undefined,
    private readonly keysOf: (label: string) => TopKeyCounts | undefined = () => undefined,
  ) {}

  times(): boolean {
    if (++this.untimed < TIMED_EVERY) return false;
    this.untimed = 0;
    return true;
  }

  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number | undefined): void {
    let refused = false;
    let fallback = false;
    let cache = false;
    let prefetch = false;
    let byList = false;
    for (let i = 0; i < entries.length; i++) {
      const decision = decisions[i]!;
      const { source } = decision;
      if (!decision.allowed && isRefusal(entries[i]!.limit, decision)) {
        refused = true;
        byList ||= source === 'list';
      }
      if (source === 'redis' || source === 'memory') continue;
      if (source === 'fallback') fallback = true;
      else if (source === 'cache') cache = true;
      else if (source === 'prefetch') prefetch = true;
    }
    let isShown = false;
    for (let i = 0; i < entries.length; i++) {
      const decision = decisions[i]!;
      // The limits beside one that a list refused were not asked.
      const isAsked = !byList || decision.source !== 'list' || !decision.allowed;
      if (isAsked && this.count(entries[i]!, decision, !refused)) isShown = true;
    }
    if (!isShown) return;
    const { checks } = this;
    checks.checks++;
    if (fallback) checks.fallback++;
    if (cache) checks.cache++;
    if (prefetch) checks.prefetch++;
    // What is answered in process says nothing of the store.
    if (latencyMs !== undefined && !cache && !prefetch) this.latencies.add(latencyMs);
  }

  failed(): void {
    this.checks.checks++;
    this.checks.fallback++;
  }

  /** Takes out what was counted since it was last taken. */
  take(): Bucket {
    const limits = new Map<string, LimitCounts>();
    for (const counted of this.byLabel.values()) {
      const { allowed, refused, shadowRefused, near, candidateRefused } = counted;
      if (allowed + refused + shadowRefused + candidateRefused === 0) continue;
      limits.set(counted.label, { allowed, refused, shadowRefused, near, candidateRefused });
      Object.assign(counted, noLimitCounts());
    }
    const { checks } = this;
    this.checks = noCheckCounts();
    return { limits, checks, latencies: this.latencies.take() };
  }

  /** Asks anew where the keys of each label are counted. */
  watch(): void {
    for (const counted of this.byLabel.values()) counted.keys = this.keysOf(counted.label);
  }

  /** Returns whether the limit is shown. */
  private count(entry: CheckEntry, decision: StoreDecision, charged: boolean): boolean {
    const { limit, identity, cost } = entry;
    const counted = limit === this.lastLimit ? this.lastCounted : this.of(limit);
    if (counted === null) return false;
    if (limit.isCandidate) {
      if (!decision.allowed) counted.candidateRefused++;
      return true;
    }
    if (decision.allowed) {
      counted.allowed++;
      if (charged && becameNear(entry, decision)) counted.near++;
    } else if (limit.shadow) counted.shadowRefused++;
    else counted.refused++;
    if (counted.keys !== undefined) counted.keys.seen(identity, decision.allowed ? cost : 0);
    return true;
  }

  private of(limit: CompiledLimit): Counted | null {
    let counted = this.byLimit.get(limit);
    if (counted === undefined) {
      if (this.byLimit.size >= MOST_LIMITS) this.byLimit.clear();
      counted = this.add(this.labelOf(limit));
      this.byLimit.set(limit, counted);
    }
    this.lastLimit = limit;
    this.lastCounted = counted;
    return counted;
  }

  private add(wanted: string | undefined): Counted | null {
    if (wanted === undefined) return null;
    const isKnown = this.byLabel.has(wanted) || this.byLabel.size < MOST_LABELS;
    const label = isKnown ? wanted : OTHERS;
    let counted = this.byLabel.get(label);
    if (counted === undefined) {
      counted = { label, ...noLimitCounts(), keys: this.keysOf(label) };
      this.byLabel.set(label, counted);
    }
    return counted;
  }
}
