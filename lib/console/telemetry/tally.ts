import { milliseconds } from '../../options/values.js';
import { isRefusal } from '../../limits/check-result.js';
import type { CompiledLimit } from '../../limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../limits/counter.js';
import { shownIdentity } from '../../limits/hierarchy.js';
import type { HeldLease, StoreDecision } from '../../stores/store.js';
import type { LookAtAdaptive } from '../../telemetry/adaptive-metrics.js';
import { becameNear } from '../../telemetry/decision-event.js';
import type { DecisionTap } from '../../telemetry/decision-tap.js';
import type { AdaptiveNow } from '../api.js';
import { type Bucket, type LimitCounts, noCheckCounts, noLimitCounts, OTHERS } from './bucket.js';
import { LatencyHistogram } from './latency-histogram.js';
import type { DemandWindow } from './demand-window.js';
import type { NotedKeys } from './noted-keys.js';
import type { TopKeyCounts } from './top-keys.js';

/** One of this many checks is timed: reading the clock twice would cost more than everything else here. */
const TIMED_EVERY = 64;
/** The most declared limits that are distinguished; further ones are counted together. */
const MOST_DECLARED = 2000;
/** The most labels of other limits that are distinguished: functions may make new ones for each request. */
const MOST_GIVEN = 200;
/** The most limits. */
const MOST_LIMITS = 4000;

function isOfStore({ source }: StoreDecision): boolean {
  return source === 'redis' || source === 'memory';
}

/** Whether refusals of a limit block their keys. */
function blocksKeys({ blockFor, escalation }: CompiledLimit): boolean {
  return blockFor > 0 || escalation !== undefined;
}

/** Whether units of a limit are held by leases that are kept in the store. */
function leasesUnits({ algorithm, adapts }: CompiledLimit): boolean {
  return algorithm.leases !== undefined && !adapts;
}

/** How long such a lease lasts that nobody renews or releases, in milliseconds. */
function leaseMs({ options }: CompiledLimit): number {
  return milliseconds((options as { ttl?: unknown }).ttl) ?? 0;
}

/** The counts of a limit until the next second. */
interface Counted extends LimitCounts {
  readonly label: string;
  /** Where its keys are counted, if they are. */
  keys: TopKeyCounts | undefined;
  /** The version of it that decided last. */
  limit: CompiledLimit;
  /** Where what its keys ask for is counted in this interval, if it is. */
  demand: DemandWindow | undefined;
}

/** Counts the decisions of this instance until the next second. */
export class Tally implements DecisionTap {
  private readonly byLabel = new Map<string, Counted>();
  private readonly byLimit = new Map<CompiledLimit, Counted | null>();
  private declared = 0;
  private given = 0;
  /** Whether declared limits are counted as others. */
  private hides = false;
  /** The limit that was counted last, unless the units of its keys are counted, too. */
  private lastLimit: CompiledLimit | undefined;
  private lastCounted = noLimitCounts();
  /** It is near its limit if fewer units are left. */
  private lastNearBelow = 0;
  private checks = noCheckCounts();
  private readonly latencies = new LatencyHistogram();
  private untimed = 0;

  /** The last request to each adaptive limit, by label. */
  private readonly adaptive = new Map<string, CheckEntry>();

  /**
   * @param labelOf returns the label of a limit; `undefined` for one that is not shown
   * @param keysOf returns where the keys of a label are counted, if they are
   * @param isDeclared returns whether a label is that of a declared limit
   * @param demandOf returns where the demand of a label is counted, if it is
   * @param noted where keys are noted that are blocked or hold units
   */
  constructor(
    private readonly labelOf: (limit: CompiledLimit) => string | undefined,
    private readonly keysOf: (label: string) => TopKeyCounts | undefined = () => undefined,
    private readonly isDeclared: (label: string) => boolean = () => false,
    private readonly demandOf: (label: string, limit: CompiledLimit) => DemandWindow | undefined = () => undefined,
    private readonly noted?: NotedKeys,
  ) {}

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
    const label = this.labelOf(counter.limit);
    if (label !== undefined) this.noted?.blocked('call', label, shownIdentity(counter), durationMs);
  }

  renewed(lease: HeldLease): void {
    const { limit } = lease;
    const label = leasesUnits(limit) ? this.labelOf(limit) : undefined;
    if (label !== undefined) this.noted?.held(label, shownIdentity(lease), leaseMs(limit));
  }

  /** Removes and returns the counts since the last call. */
  take(): Bucket {
    const limits = new Map<string, LimitCounts>();
    for (const counted of this.byLabel.values()) {
      const { allowed, refused, shadowRefused, near, candidateRefused, candidateAsked } = counted;
      if (allowed + refused + shadowRefused + candidateAsked === 0) continue;
      limits.set(counted.label, {
        ...noLimitCounts(),
        allowed,
        refused,
        shadowRefused,
        near,
        candidateRefused,
        candidateAsked,
      });
      Object.assign(counted, noLimitCounts());
    }
    const { checks } = this;
    this.checks = noCheckCounts();
    return { limits, checks, latencies: this.latencies.take(), hides: this.hides && limits.has(OTHERS) };
  }

  /** The current state of each adaptive limit, by label; `undefined` if there are none. */
  adaptiveNow(look: LookAtAdaptive): Record<string, AdaptiveNow> | undefined {
    if (this.adaptive.size === 0) return undefined;
    const seen = [...this.adaptive].flatMap(([label, entry]) => {
      const { quota: limit, inFlight = 0 } = look(entry) ?? { quota: NaN };
      return limit >= 0 ? [[label, { limit, inFlight }]] : [];
    });
    return Object.fromEntries(seen) as Record<string, AdaptiveNow>;
  }

  /** Looks up again where the keys of each label are counted. */
  watch(): void {
    this.lastLimit = undefined;
    for (const counted of this.byLabel.values()) {
      const { label, limit } = counted;
      counted.keys = this.keysOf(label);
      // Keys of several limits are not those of one.
      counted.demand = label === OTHERS ? undefined : this.demandOf(label, limit);
    }
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
    const counted = this.of(limit);
    if (counted === null) return false;
    if (limit.isCandidate) {
      counted.candidateAsked++;
      if (!decision.allowed) counted.candidateRefused++;
      return true;
    }
    if (limit.adapts) this.adaptive.set(counted.label, entry);
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
      if (leases && charged && decision.ticket !== undefined)
        this.noted?.held(counted.label, shownIdentity(entry), leaseMs(limit));
    } else {
      if (limit.shadow) counted.shadowRefused++;
      else counted.refused++;
      keys?.refused.add(shownIdentity(entry), 1);
      const { retryAfterMs } = decision;
      if (blocksKeys(limit) && decision.source !== 'list' && retryAfterMs < Infinity)
        this.noted?.blocked('limit', counted.label, shownIdentity(entry), retryAfterMs);
    }
    return true;
  }

  private of(limit: CompiledLimit): Counted | null {
    let counted = this.byLimit.get(limit);
    if (counted === undefined) {
      if (this.byLimit.size >= MOST_LIMITS) this.byLimit.clear();
      counted = this.add(this.labelOf(limit), limit);
      this.byLimit.set(limit, counted);
      if (counted !== null && !limit.isCandidate) counted.limit = limit;
    }
    return counted;
  }

  private add(wanted: string | undefined, limit: CompiledLimit): Counted | null {
    if (wanted === undefined) return null;
    const label = this.byLabel.has(wanted) || this.hasRoom(wanted) ? wanted : OTHERS;
    let counted = this.byLabel.get(label);
    if (counted === undefined) {
      counted = { label, ...noLimitCounts(), keys: this.keysOf(label), limit, demand: undefined };
      this.byLabel.set(label, counted);
    }
    return counted;
  }

  private hasRoom(label: string): boolean {
    if (!this.isDeclared(label)) return this.given++ < MOST_GIVEN;
    const hasRoom = this.declared++ < MOST_DECLARED;
    this.hides ||= !hasRoom;
    return hasRoom;
  }
}
