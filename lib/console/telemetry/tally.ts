import { isRefusal } from '../../engine/limits/check-result.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import { shownIdentity } from '../../engine/limits/hierarchy.js';
import type { HeldLease, StoreDecision } from '../../storage/stores/store.js';
import { becameNear } from '../../storage/telemetry/decision-event.js';
import type { DecisionTap } from '../../storage/telemetry/decision-tap.js';
import { type Bucket, LatencyHistogram, noCheckCounts, noLimitCounts } from './bucket.js';
import { CountedLimits, LastingDecisions, leasesUnits } from './counted-limits.js';
import type { DemandWindow } from './demand-sampler.js';
import type { NotedKeys } from './noted-keys.js';
import type { TopKeyCounts } from './top-keys.js';
import type { LookAtAdaptive } from '../../storage/telemetry/adaptive-metrics.js';
import type { AdaptiveNow } from '../api.js';

/** The adaptive limits that are in use, and their state. */
class AdaptiveLimits {
  /** The last request to each, by label. */
  private readonly last = new Map<string, CheckEntry>();

  asked(label: string, entry: CheckEntry): void {
    this.last.set(label, entry);
  }

  /** The current state of each, by label; `undefined` if there are none. */
  now(look: LookAtAdaptive): Record<string, AdaptiveNow> | undefined {
    if (this.last.size === 0) return undefined;
    const seen = [...this.last].flatMap(([label, entry]) => {
      const { quota: limit, inFlight = 0 } = look(entry) ?? { quota: NaN };
      return limit >= 0 ? [[label, { limit, inFlight }]] : [];
    });
    return Object.fromEntries(seen) as Record<string, AdaptiveNow>;
  }

  /** Notes in a bucket what they admit and have in flight, if they are in use. */
  addTo({ limits }: Bucket, look: LookAtAdaptive): void {
    for (const [label, { limit, inFlight }] of Object.entries(this.now(look) ?? {})) {
      const counts = limits.get(label) ?? noLimitCounts();
      if (inFlight === 0 && !limits.has(label)) continue;
      limits.set(label, { ...counts, looks: 1, admits: limit, inFlight });
    }
  }
}

/** One of this many checks is timed: reading the clock twice would cost more than everything else here. */
const TIMED_EVERY = 64;

function isOfStore({ source }: StoreDecision): boolean {
  return source === 'redis' || source === 'memory';
}

/** Counts the decisions of this instance until the next second. */
export class Tally implements DecisionTap {
  readonly adaptive = new AdaptiveLimits();
  private readonly limits: CountedLimits;
  private readonly lasting: LastingDecisions;
  /** The limit that was counted last, unless the units of its keys are counted, too. */
  private lastLimit: CompiledLimit | undefined;
  private lastCounted = noLimitCounts();
  /** It is near its limit if fewer units are left. */
  private lastNearBelow = 0;
  private checks = noCheckCounts();
  private readonly latencies = new LatencyHistogram();
  private untimed = 0;

  /**
   * @param labelOf returns the label of a limit; `undefined` for one that is not shown
   * @param keysOf returns where the keys of a label are counted, if they are
   * @param isDeclared returns whether a label is that of a declared limit
   * @param demandOf returns where the demand of a label is counted, if it is
   * @param noted where keys are noted that are blocked or hold units
   */
  constructor(
    labelOf: (limit: CompiledLimit) => string | undefined,
    keysOf: (label: string) => TopKeyCounts | undefined = () => undefined,
    isDeclared: (label: string) => boolean = () => false,
    demandOf: (label: string, limit: CompiledLimit) => DemandWindow | undefined = () => undefined,
    noted?: NotedKeys,
  ) {
    this.limits = new CountedLimits(labelOf, keysOf, isDeclared, demandOf);
    this.lasting = new LastingDecisions(noted, labelOf);
  }

  times(): boolean {
    if (++this.untimed < TIMED_EVERY) return false;
    this.untimed = 0;
    return true;
  }

  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number): void {
    const decision = decisions[0]!;
    // Most checks are of one limit, the same as before, which allows and is not near its limit.
    if (
      entries.length === 1 &&
      entries[0]!.limit === this.lastLimit &&
      decision.remaining > this.lastNearBelow &&
      decision.allowed &&
      latencyMs < 0 &&
      isOfStore(decision)
    ) {
      this.lastCounted.allowed++;
      this.checks.checks++;
    } else this.decidedOtherwise(entries, decisions, latencyMs);
  }

  failed(): void {
    this.checks.checks++;
    this.checks.fallback++;
  }

  blocked(counter: Counter, durationMs: number): void {
    this.lasting.blocked(counter, durationMs);
  }

  renewed(lease: HeldLease): void {
    this.lasting.renewed(lease);
  }

  /** Removes and returns the counts since the last call. */
  take(): Bucket {
    const { checks } = this;
    this.checks = noCheckCounts();
    return { ...this.limits.take(), checks, latencies: this.latencies.take() };
  }

  /** Looks up again where the keys of each label are counted. */
  watch(): void {
    this.lastLimit = undefined;
    this.limits.watch();
  }

  private decidedOtherwise(
    entries: readonly CheckEntry[],
    decisions: readonly StoreDecision[],
    latencyMs: number,
  ): void {
    let refused = false;
    let isByList = false;
    let isOfStoreAlone = true;
    for (let i = 0; i < entries.length; i++) {
      const decision = decisions[i]!;
      if (isRefusal(entries[i]!.limit, decision)) {
        refused = true;
        isByList ||= decision.source === 'list';
      }
      isOfStoreAlone &&= isOfStore(decision);
    }
    let isShown = false;
    for (let i = 0; i < entries.length; i++) {
      const decision = decisions[i]!;
      // The limits beside one whose list refused were not asked.
      if (isByList && decision.source === 'list' && decision.allowed) continue;
      if (this.count(entries[i]!, decision, !refused)) isShown = true;
    }
    if (!isShown) return;
    this.checks.checks++;
    // Answers from this process say nothing about the store.
    if (!isOfStoreAlone) this.countSources(decisions);
    else if (latencyMs >= 0) this.latencies.add(latencyMs);
  }

  private countSources(decisions: readonly StoreDecision[]): void {
    for (const name of ['fallback', 'cache', 'prefetch'] as const) {
      if (decisions.some(({ source }) => source === name)) this.checks[name]++;
    }
  }

  /** Returns whether the limit is shown. */
  private count(entry: CheckEntry, decision: StoreDecision, charged: boolean): boolean {
    const { limit, cost } = entry;
    const counted = this.limits.of(limit);
    if (counted === null) return false;
    if (limit.isCandidate) {
      counted.candidateAsked++;
      if (!decision.allowed) counted.candidateRefused++;
      return true;
    }
    if (limit.adapts) this.adaptive.asked(counted.label, entry);
    const { keys, demand } = counted;
    const leases = leasesUnits(limit);
    if (keys?.used === undefined && demand === undefined && limit !== this.lastLimit && !leases) {
      this.lastLimit = limit;
      this.lastCounted = counted;
      this.lastNearBelow = limit.quota - limit.nearFrom;
    }
    if (demand !== undefined && cost > 0) demand.add(shownIdentity(entry), cost);
    if (decision.allowed) {
      counted.allowed++;
      if (charged && becameNear(entry, decision)) counted.near++;
      if (cost > 0) keys?.used?.add(shownIdentity(entry), cost);
      if (leases && charged) this.lasting.leased(counted.label, entry, decision);
    } else {
      if (limit.shadow) counted.shadowRefused++;
      else counted.refused++;
      keys?.refused.add(shownIdentity(entry), 1);
      this.lasting.refused(counted.label, entry, decision);
    }
    return true;
  }
}
