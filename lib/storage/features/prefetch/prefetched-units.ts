import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { Check, Refund, StoreDecision } from '../../stores/store.js';
import { chargeOf } from '../../stores/store-decision.js';
import type { PrefetchTerms } from './terms.js';

/** A request that waits for units. */
interface Waiter {
  readonly cost: number;
  /** When it was requested, in milliseconds of the process's clock. */
  readonly since: number;
  readonly resolve: (decision: StoreDecision) => void;
  readonly reject: (reason: unknown) => void;
}

/** Passes one check to the store. */
export type Ask = (check: Check) => Promise<StoreDecision>;

/**
 * Units of one counter that an instance has taken from the store and can use for some time. The instance takes as many as are requested. If
 * they were used up in time, it takes twice as many the next time, but at most half of the units that the store has left. So a counter with
 * few checks, or one that is nearly used up, is checked one by one.
 */
export class PrefetchedUnits {
  /** Units that can be used. */
  left = 0;
  /** Until when they can be used, in milliseconds of the process's clock. */
  until = 0;
  /** Requests that wait for units. */
  private waiting: Waiter[] = [];
  private filling = false;
  /** The number of units taken last, if they were used up in time; otherwise 0. */
  private size = 0;
  /** The units that the store had left at that time. */
  private remaining = Infinity;
  private resetAt = 0;
  private chargedAt: number | undefined;
  private source: StoreDecision['source'] = 'prefetch';
  private quota: number;
  /** How units on their way are handled once the waiting requests have theirs. */
  private fate: 'keep' | 'end' | 'drop' = 'keep';

  constructor(
    readonly limit: CompiledLimit,
    private readonly terms: PrefetchTerms,
    readonly identity: string,
    private readonly ask: Ask,
    /** Refunds units. */
    private readonly giveBack: (refund: Refund) => void,
  ) {
    this.quota = limit.quota;
  }

  /** How long units can be used after they were taken, in milliseconds. */
  get ttlMs(): number {
    return this.terms.ttl / 1000;
  }

  /** True if no units are held and no request waits. */
  get isIdle(): boolean {
    return this.left === 0 && !this.filling;
  }

  /** Takes units from those held here. Returns nothing if there are too few, they are too old, or other requests wait for them. */
  use(cost: number, now: number): StoreDecision | undefined {
    if (this.left < cost || now >= this.until || this.waiting.length > 0) return undefined;
    this.left -= cost;
    return this.decision(now);
  }

  /** Puts back units that a request didn't need after all. */
  putBack(cost: number, decision: StoreDecision): void {
    const { limit, identity } = this;
    const { chargedAt } = decision;
    if (chargedAt !== undefined && chargedAt === this.chargedAt && performance.now() < this.until) this.left += cost;
    else this.giveBack(chargeOf({ limit, identity, cost }, decision));
  }

  /** The counter's decision with the units held here added. */
  adjusted(decision: StoreDecision, cost: number, now: number): StoreDecision {
    const left = now < this.until ? this.left : 0;
    const remaining = Math.min(decision.quota, decision.remaining + left);
    if (decision.allowed || cost > decision.remaining + left) return { ...decision, remaining };
    return { ...decision, allowed: true, remaining, retryAfterMs: 0 };
  }

  /** Waits for units from the store. */
  take(cost: number): Promise<StoreDecision> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ cost, since: performance.now(), resolve, reject });
      if (!this.filling) void this.fill();
    });
  }

  /** Returns units that were not used in time. */
  expire(now: number): void {
    if (now >= this.until) this.returnLeft();
  }

  /** Returns the units that are left, and those on their way. */
  end(): void {
    if (this.fate === 'keep') this.fate = 'end';
    this.until = 0;
    this.returnLeft();
  }

  /** Drops the units that are left: the counter was reset, so it no longer contains their charge. */
  drop(): void {
    this.fate = 'drop';
    this.until = 0;
    this.left = 0;
  }

  private returnLeft(): void {
    if (this.left === 0) return;
    const { limit, identity, left: units, chargedAt, source } = this;
    this.left = 0;
    // Fewer units were needed.
    this.size -= units;
    this.giveBack({ limit, identity, units, chargedAt, source });
  }

  private async fill(): Promise<void> {
    this.filling = true;
    while (this.waiting.length > 0) {
      // The remaining units are too few or too old.
      this.returnLeft();
      const asked = this.waiting.length;
      try {
        await this.fillOnce();
      } catch (error) {
        for (const { reject } of this.waiting.splice(0, asked)) reject(error);
      }
    }
    this.filling = false;
  }

  private async fillOnce(): Promise<void> {
    const asked = [...this.waiting];
    const { cost, since } = asked[0]!;
    this.fate = 'keep';
    let units = this.wanted(asked);
    let askedAt = performance.now();
    let decision = await this.charge(units, since);
    while (!decision.allowed && units > cost) {
      units = decision.remaining >= cost ? Math.min(decision.remaining, units - 1) : cost;
      askedAt = performance.now();
      decision = await this.charge(units, since);
    }
    this.remaining = decision.remaining;
    if (!decision.allowed) {
      const refused = asked.filter((waiter) => waiter.cost === cost);
      this.waiting = this.waiting.filter((waiter) => !refused.includes(waiter));
      for (const { resolve } of refused) resolve({ ...decision });
      return;
    }
    this.keep(units, decision, askedAt);
    this.serve(asked.length);
    // The store in process uses the declared parameters, so units that are used later than charged would exceed the limit.
    if (this.hasFate('end') || decision.source === 'fallback') this.end();
    if (this.hasFate('drop')) this.drop();
  }

  private hasFate(fate: PrefetchedUnits['fate']): boolean {
    return this.fate === fate;
  }

  private charge(cost: number, since: number): Promise<StoreDecision> {
    return this.ask({ entries: [{ limit: this.limit, identity: this.identity, cost }], refundable: true, since });
  }

  private wanted(asked: readonly Waiter[]): number {
    const { quota } = this.limit;
    const now = performance.now();
    const demand = asked.reduce((sum, { cost }) => sum + cost, 0);
    const recently = now < this.until + this.ttlMs ? this.size : 0;
    const ahead = Math.min(now < this.until ? recently * 2 : recently, Math.floor(this.remaining / 2));
    return Math.max(asked[0]!.cost, Math.min(this.terms.units, quota, Math.max(demand, ahead)));
  }

  private keep(units: number, decision: StoreDecision, askedAt: number): void {
    const { chargedAt, source, resetAfterMs, quota } = decision;
    const { algorithm } = this.limit;
    const { ttlMs } = this;
    // Rejected requests have put units back while these were taken.
    this.returnLeft();
    this.size = units;
    this.left = units;
    this.chargedAt = chargedAt;
    this.quota = quota;
    this.source = source === 'fallback' ? source : 'prefetch';
    this.resetAt = performance.now() + resetAfterMs;
    // Measured from the time of the call, which is before the charge; replies round resets up to whole milliseconds.
    this.until = askedAt + (algorithm.prefetch!.endsWithWindow ? Math.min(ttlMs, resetAfterMs - 1) : ttlMs);
  }

  /** Requests that waited before the units were taken get theirs in any case; the others only if the units can still be used. */
  private serve(asked: number): void {
    const now = performance.now();
    let served = 0;
    for (const { cost, resolve } of this.waiting) {
      if (cost > this.left || (served >= asked && now >= this.until)) break;
      this.left -= cost;
      served++;
      resolve(this.decision(now));
    }
    this.waiting.splice(0, served);
  }

  private decision(now: number): StoreDecision {
    const { limit, quota, chargedAt, source, left, remaining, resetAt } = this;
    const decision: StoreDecision = {
      allowed: true,
      limit: limit.name,
      quota,
      remaining: Math.min(quota, remaining + left),
      retryAfterMs: 0,
      resetAfterMs: Math.max(0, Math.ceil(resetAt - now)),
      delayMs: 0,
      source,
    };
    if (chargedAt !== undefined) decision.chargedAt = chargedAt;
    return decision;
  }
}
