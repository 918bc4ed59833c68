import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import { isRefusal } from '../../engine/limits/decision.js';
import { shownIdentity } from '../../engine/limits/hierarchy.js';
import { milliseconds } from '../../engine/options/values.js';
import type { HeldLease, StoreDecision } from '../../storage/stores/store.js';
import { becameNear } from '../../storage/telemetry/decision-event.js';
import type { DecisionTap } from '../../storage/telemetry/decision-stream.js';
import type { LookAtAdaptive } from '../../storage/telemetry/metrics.js';
import type { AdaptiveNow } from '../api.js';
import {
  type Bucket,
  decisionsOf,
  LatencyHistogram,
  type LimitCounts,
  noCheckCounts,
  noLimitCounts,
  OTHERS,
} from './bucket.js';
import type { DemandWindow } from './demand-sampler.js';
import type { NotedKeys } from './noted-keys.js';
import type { TopKeyCounts } from './top-keys.js';

/** A limit with room counts as full for this long, in milliseconds, since units come and go. */
const ROOM_MS = 5000;

/** The adaptive limits that are in use, and their state. */
class AdaptiveLimits {
  /** The last request to each limit, by label. */
  private readonly last = new Map<string, CheckEntry>();
  /** Since when each limit is full, and when it was last seen full. */
  private readonly full = new Map<string, { since: number; seenAt: number }>();

  asked(label: string, entry: CheckEntry): void {
    this.last.set(label, entry);
  }

  /** The current state of each limit, by label; `undefined` if there are none. */
  now(look: LookAtAdaptive): Record<string, AdaptiveNow> | undefined {
    if (this.last.size === 0) return undefined;
    const seen = [...this.last].flatMap(([label, entry]) => {
      const { quota: limit, inFlight = 0 } = look(entry) ?? { quota: NaN };
      return limit >= 0 ? [[label, { limit, inFlight }]] : [];
    });
    return Object.fromEntries(seen) as Record<string, AdaptiveNow>;
  }

  /** The same, with the time since when each limit is full. */
  nowAndSince(look: LookAtAdaptive, at: number): Record<string, AdaptiveNow> | undefined {
    const now = this.now(look);
    for (const [label, state] of Object.entries(now ?? {})) {
      const { limit, inFlight } = state;
      const known = this.full.get(label);
      if (inFlight >= limit && inFlight > 0) this.full.set(label, { since: known?.since ?? at, seenAt: at });
      else if (known !== undefined && at - known.seenAt > ROOM_MS) this.full.delete(label);
      state.fullSince = this.full.get(label)?.since;
    }
    return now;
  }

  /** Adds the admitted units and those in flight to a bucket, for limits in use. */
  addTo({ limits }: Bucket, look: LookAtAdaptive): void {
    for (const [label, { limit, inFlight }] of Object.entries(this.now(look) ?? {})) {
      const counts = limits.get(label) ?? noLimitCounts();
      if (inFlight === 0 && !limits.has(label)) continue;
      limits.set(label, { ...counts, looks: 1, admits: limit, inFlight });
    }
  }
}

/** One out of this many checks is timed, since reading the clock twice would cost more than the rest. */
const TIMED_EVERY = 64;

function isOfStore({ source }: StoreDecision): boolean {
  return source === 'redis' || source === 'memory';
}

/** Counts in addition to the decisions of limits. */
interface MoreCounts {
  /** Returns true for the label of a declared limit. */
  isDeclared(label: string): boolean;
  /** The counts of a label's keys, if they are counted. */
  keysOf(label: string): TopKeyCounts | undefined;
  /** The demand of a label's keys, if it is counted. */
  demandOf(label: string, limit: CompiledLimit): DemandWindow | undefined;
  /** Records keys that are blocked or hold units. */
  readonly noted: NotedKeys;
}

/** Counts the decisions of this instance until the next second. */
export class Tally implements DecisionTap {
  readonly adaptive = new AdaptiveLimits();
  private readonly limits: CountedLimits;
  /** The last counted limit, unless the units of its keys are also counted. */
  private lastLimit: CompiledLimit | undefined;
  private lastCounted = noLimitCounts();
  /** With fewer units left, it is near its limit. */
  private lastNearBelow = 0;
  private checks = noCheckCounts();
  private readonly latencies = new LatencyHistogram();
  private untimed = 0;

  /** @param labelOf returns the label of a limit; `undefined` if it isn't displayed */
  constructor(
    private readonly labelOf: (limit: CompiledLimit) => string | undefined,
    private readonly more: Partial<MoreCounts> = {},
  ) {
    this.limits = new CountedLimits(labelOf, more);
  }

  times(): boolean {
    if (++this.untimed < TIMED_EVERY) return false;
    this.untimed = 0;
    return true;
  }

  decided(entries: readonly CheckEntry[], decisions: readonly StoreDecision[], latencyMs: number): void {
    const decision = decisions[0]!;
    // A shortcut for most checks: of one limit, the same as before, which allows and isn't near its limit.
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
    if (label !== undefined) this.more.noted?.blocked('call', label, shownIdentity(counter), durationMs);
  }

  renewed(lease: HeldLease): void {
    const { limit } = lease;
    const label = leasesUnits(limit) ? this.labelOf(limit) : undefined;
    if (label !== undefined) this.more.noted?.held(label, shownIdentity(lease), leaseMs(limit));
  }

  /** Removes and returns the counts since the last call. */
  take(): Bucket {
    const { checks } = this;
    this.checks = noCheckCounts();
    return { ...this.limits.take(), checks, latencies: this.latencies.take() };
  }

  /** Updates which labels' keys are counted. */
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
      // If a list denied the request, its other limits were not checked.
      if (isByList && decision.source === 'list' && decision.allowed) continue;
      if (this.count(entries[i]!, decision, !refused)) isShown = true;
    }
    if (!isShown) return;
    this.checks.checks++;
    // Answers from this process don't reflect the state of the store.
    if (!isOfStoreAlone) this.countSources(decisions);
    else if (latencyMs >= 0) this.latencies.add(latencyMs);
  }

  private countSources(decisions: readonly StoreDecision[]): void {
    for (const name of ['fallback', 'cache', 'prefetch'] as const) {
      if (decisions.some(({ source }) => source === name)) this.checks[name]++;
    }
  }

  /** Returns true if the limit is displayed. */
  private count(entry: CheckEntry, decision: StoreDecision, charged: boolean): boolean {
    const { limit, cost } = entry;
    const counted = this.limits.of(limit);
    if (counted === null) return false;
    if (limit.isCandidate) {
      counted.counts.candidateAsked++;
      if (!decision.allowed) counted.counts.candidateRefused++;
      return true;
    }
    if (limit.adapts) this.adaptive.asked(counted.label, entry);
    const { counts, keys, demand } = counted;
    const leases = leasesUnits(limit);
    if (keys?.used === undefined && demand === undefined && limit !== this.lastLimit && !leases) {
      this.lastLimit = limit;
      this.lastCounted = counts;
      this.lastNearBelow = limit.quota - limit.nearFrom;
    }
    if (demand !== undefined && cost > 0) demand.add(shownIdentity(entry), cost);
    if (decision.allowed) {
      counts.allowed++;
      if (charged && becameNear(entry, decision)) counts.near++;
      if (cost > 0) keys?.used?.add(shownIdentity(entry), cost);
      if (leases && charged && decision.ticket !== undefined)
        this.more.noted?.held(counted.label, shownIdentity(entry), leaseMs(limit));
    } else {
      if (limit.shadow) counts.shadowRefused++;
      else counts.refused++;
      keys?.refused.add(shownIdentity(entry), 1);
      if (blocksKeys(limit) && decision.source !== 'list' && decision.retryAfterMs < Infinity)
        this.more.noted?.blocked('limit', counted.label, shownIdentity(entry), decision.retryAfterMs);
    }
    return true;
  }
}

/** Returns true if units of a limit are held by leases in the store. */
function leasesUnits({ algorithm, adapts }: CompiledLimit): boolean {
  return algorithm.leases !== undefined && !adapts;
}

/** The duration of such a lease if it is neither renewed nor released, in milliseconds. */
function leaseMs({ options }: CompiledLimit): number {
  return milliseconds((options as { ttl?: unknown }).ttl) ?? 0;
}

/** Returns true if rejections of a limit block their keys. */
function blocksKeys({ blockFor, escalation }: CompiledLimit): boolean {
  return blockFor > 0 || escalation !== undefined;
}

/** Maximum number of declared limits to count separately; the rest is counted together. */
const MOST_DECLARED = 2000;
/** Maximum number of other labels to count separately, since functions may create new ones for each request. */
const MOST_GIVEN = 200;
/** Maximum number of limits. */
const MOST_LIMITS = 4000;

/** The counts of a limit until the next second. */
interface Counted {
  readonly label: string;
  readonly counts: LimitCounts;
  /** The counts of its keys, if they are counted. */
  keys: TopKeyCounts | undefined;
  /** The version of the limit that decided last. */
  limit: CompiledLimit;
  /** The demand of its keys in this interval, if it is counted. */
  demand: DemandWindow | undefined;
}

/** The counts of limits: each by its label, and the rest together. */
class CountedLimits {
  private readonly byLabel = new Map<string, Counted>();
  private readonly byLimit = new Map<CompiledLimit, Counted | null>();
  private declared = 0;
  private given = 0;
  /** True if declared limits are counted as others. */
  private hides = false;

  constructor(
    private readonly labelOf: (limit: CompiledLimit) => string | undefined,
    private readonly more: Partial<MoreCounts>,
  ) {}

  /** The counts of a limit; `null` if it isn't displayed. */
  of(limit: CompiledLimit): Counted | null {
    let counted = this.byLimit.get(limit);
    if (counted === undefined) {
      if (this.byLimit.size >= MOST_LIMITS) this.byLimit.clear();
      counted = this.add(this.labelOf(limit), limit);
      this.byLimit.set(limit, counted);
      if (counted !== null && !limit.isCandidate) counted.limit = limit;
    }
    return counted;
  }

  /** Removes and returns the counts since the last call. */
  take(): Pick<Bucket, 'limits' | 'hides'> {
    const limits = new Map<string, LimitCounts>();
    for (const { label, counts } of this.byLabel.values()) {
      if (decisionsOf(counts) === 0) continue;
      limits.set(label, { ...counts });
      Object.assign(counts, noLimitCounts());
    }
    return { limits, hides: this.hides && limits.has(OTHERS) };
  }

  /** Updates which labels' keys are counted. */
  watch(): void {
    for (const counted of this.byLabel.values()) {
      const { label, limit } = counted;
      counted.keys = this.more.keysOf?.(label);
      // The keys of several limits can't be counted as those of one.
      counted.demand = label === OTHERS ? undefined : this.more.demandOf?.(label, limit);
    }
  }

  private add(wanted: string | undefined, limit: CompiledLimit): Counted | null {
    if (wanted === undefined) return null;
    const label = this.byLabel.has(wanted) || this.hasRoom(wanted) ? wanted : OTHERS;
    let counted = this.byLabel.get(label);
    if (counted === undefined) {
      counted = { label, counts: noLimitCounts(), keys: this.more.keysOf?.(label), limit, demand: undefined };
      this.byLabel.set(label, counted);
    }
    return counted;
  }

  private hasRoom(label: string): boolean {
    if (this.more.isDeclared?.(label) !== true) return this.given++ < MOST_GIVEN;
    const hasRoom = this.declared++ < MOST_DECLARED;
    this.hides ||= !hasRoom;
    return hasRoom;
  }
}
