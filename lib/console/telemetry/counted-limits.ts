import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { type Bucket, type LimitCounts, noLimitCounts, OTHERS } from './bucket.js';
import type { DemandWindow } from './demand-sampler.js';
import type { TopKeyCounts } from './top-keys.js';
import { milliseconds } from '../../engine/options/values.js';
import type { CheckEntry, Counter } from '../../engine/limits/counter.js';
import { shownIdentity } from '../../engine/limits/hierarchy.js';
import type { HeldLease, StoreDecision } from '../../storage/stores/store.js';
import type { NotedKeys } from './noted-keys.js';

/** Returns true if units of a limit are held by leases in the store. */
export function leasesUnits({ algorithm, adapts }: CompiledLimit): boolean {
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

/** Records the keys of decisions that outlast their requests: leases and blocks. */
export class LastingDecisions {
  constructor(
    private readonly noted: NotedKeys | undefined,
    private readonly labelOf: (limit: CompiledLimit) => string | undefined,
  ) {}

  /** Called when a limit with leases was charged. */
  leased(label: string, entry: CheckEntry, { ticket }: StoreDecision): void {
    if (ticket !== undefined) this.noted?.held(label, shownIdentity(entry), leaseMs(entry.limit));
  }

  refused(label: string, entry: CheckEntry, { source, retryAfterMs }: StoreDecision): void {
    if (blocksKeys(entry.limit) && source !== 'list' && retryAfterMs < Infinity)
      this.noted?.blocked('limit', label, shownIdentity(entry), retryAfterMs);
  }

  /** Called when a call blocked a counter for `durationMs` milliseconds, or unblocked it if that is 0. */
  blocked(counter: Counter, durationMs: number): void {
    const label = this.labelOf(counter.limit);
    if (label !== undefined) this.noted?.blocked('call', label, shownIdentity(counter), durationMs);
  }

  renewed(lease: HeldLease): void {
    const { limit } = lease;
    const label = leasesUnits(limit) ? this.labelOf(limit) : undefined;
    if (label !== undefined) this.noted?.held(label, shownIdentity(lease), leaseMs(limit));
  }
}

/** Maximum number of declared limits to count separately; the rest is counted together. */
const MOST_DECLARED = 2000;
/** Maximum number of other labels to count separately, since functions may create new ones for each request. */
const MOST_GIVEN = 200;
/** Maximum number of limits. */
const MOST_LIMITS = 4000;

/** The counts of a limit until the next second. */
export interface Counted extends LimitCounts {
  readonly label: string;
  /** The counts of its keys, if they are counted. */
  keys: TopKeyCounts | undefined;
  /** The version of the limit that decided last. */
  limit: CompiledLimit;
  /** The demand of its keys in this interval, if it is counted. */
  demand: DemandWindow | undefined;
}

/** The counts of limits: each by its label, and the rest together. */
export class CountedLimits {
  private readonly byLabel = new Map<string, Counted>();
  private readonly byLimit = new Map<CompiledLimit, Counted | null>();
  private declared = 0;
  private given = 0;
  /** True if declared limits are counted as others. */
  private hides = false;

  /**
   * @param labelOf returns the label of a limit; `undefined` if it isn't displayed
   * @param keysOf returns the counts of a label's keys, if they are counted
   * @param isDeclared returns true for the label of a declared limit
   * @param demandOf returns the demand of a label's keys, if it is counted
   */
  constructor(
    private readonly labelOf: (limit: CompiledLimit) => string | undefined,
    private readonly keysOf: (label: string) => TopKeyCounts | undefined,
    private readonly isDeclared: (label: string) => boolean,
    private readonly demandOf: (label: string, limit: CompiledLimit) => DemandWindow | undefined,
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
    return { limits, hides: this.hides && limits.has(OTHERS) };
  }

  /** Updates which labels' keys are counted. */
  watch(): void {
    for (const counted of this.byLabel.values()) {
      const { label, limit } = counted;
      counted.keys = this.keysOf(label);
      // The keys of several limits can't be counted as those of one.
      counted.demand = label === OTHERS ? undefined : this.demandOf(label, limit);
    }
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
