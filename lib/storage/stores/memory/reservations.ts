import { BoundedMap, Kept } from '../../../engine/util/bounded-maps.js';
import type { ProcessLoad } from '../../../engine/algorithms/algorithm.js';
import { isRefusal } from '../../../engine/limits/decision.js';
import { type Counter, counterId, startsOf } from '../../../engine/limits/counter.js';
import { claimedDecision } from '../store-decision.js';
import type { Claim, ClaimEnd, ReserveEntry, StoreDecision } from '../store.js';
import type { CounterTable } from './counter-table.js';
import { type View, viewOf } from './counter-view.js';
import { type Counters, MODES } from './counters.js';
import { evaluateReservation, tellAsker, toMs } from './evaluation.js';

/** Maximum number of claims to keep, and the bytes that they may take; the least recently used is evicted first. */
const MAX_CLAIMS = 100_000;
const MAX_BYTES = 50_000_000;
const CLAIM_BYTES = 200;

/** Claimed units; times are in microseconds of the store's clock. */
class ClaimedUnits extends Kept {
  /** True if they were last requested at a time when they could already be used. */
  isUsed = false;

  constructor(
    key: string,
    readonly units: number,
    readonly ticket: number | undefined,
    readonly chargedAt: number,
    readonly usableAt: number,
    public keptUntil: number,
  ) {
    super(key);
  }
}

/** The units that a claim returns. */
type GivenBack = Pick<ClaimedUnits, 'units' | 'ticket' | 'chargedAt'>;

/** Reservations that a claim makes only once, no matter how often it is repeated. Does the same as `lua/driver/claim.lua`. */
class Claims {
  private readonly claims = new BoundedMap<ClaimedUnits>(MAX_CLAIMS, MAX_BYTES);

  /** Microseconds until claimed units can be used; `undefined` without a claim. */
  recall(key: string, now: number, keep: number): number | undefined {
    const claim = this.find(key, now);
    if (claim === undefined) return undefined;
    // If the clock was set back, they can be used no later than if they had just been claimed.
    const delay = Math.max(0, Math.min(claim.usableAt, now + claim.usableAt - claim.chargedAt) - now);
    if (delay === 0 && !claim.isUsed) {
      claim.isUsed = true;
      claim.keptUntil = now + keep;
    }
    return delay;
  }

  add(key: string, { units, ticket, chargedAt }: GivenBack, delay: number, keep: number): void {
    const usableAt = chargedAt + delay;
    const claim = new ClaimedUnits(key, units, ticket, chargedAt, usableAt, usableAt + keep);
    claim.isUsed = delay === 0;
    const before = this.claims.get(key);
    if (before !== undefined) this.claims.delete(before);
    this.claims.put(claim, CLAIM_BYTES + 2 * key.length, false);
  }

  /** Ends a claim. Returns the units to refund, unless they are spent or could already be used. */
  release(counter: Counter, { id, isSpent }: ClaimEnd, now: number): GivenBack | undefined {
    const claim = this.find(claimKeyOf(counter, id), now);
    if (claim === undefined) return undefined;
    this.claims.delete(claim);
    return isSpent || claim.isUsed ? undefined : claim;
  }

  clear(): void {
    this.claims.clear();
  }

  private find(key: string, now: number): ClaimedUnits | undefined {
    const claim = this.claims.get(key);
    if (claim === undefined || now < claim.keptUntil) return claim;
    this.claims.delete(claim);
    return undefined;
  }
}

/** Takes units of a limit and its candidate that may be available later. With a claim, takes them only once. */
export class Reservations {
  readonly claims = new Claims();

  constructor(
    private readonly table: CounterTable,
    private readonly counters: Counters,
    /** The load of the process, for adaptive limits. */
    private readonly load: ProcessLoad,
  ) {}

  make(asked: readonly ReserveEntry[], now: number): StoreDecision[] {
    const entries = asked.map((entry) => (entry.ofStarts === true ? startsOf(entry) : entry));
    const { claim } = entries[0]!;
    return claim === undefined ? this.take(entries, now) : this.takeOnce(entries, claim, now);
  }

  private takeOnce(
    entries: readonly ReserveEntry[],
    { id, keepMs, looks = false }: Claim,
    now: number,
  ): StoreDecision[] {
    const [first] = entries as readonly [ReserveEntry];
    const keep = Math.round(keepMs * 1000);
    const delay = this.claims.recall(claimKeyOf(first, id), now, keep);
    if (delay !== undefined) return [claimedDecision(first.limit, toMs(delay), 'memory')];
    if (looks) return this.counters.check({ entries, peek: true }, now);
    const decisions = this.take(entries, now);
    if (isRefusal(first.limit, decisions[0]!)) return decisions;
    for (const [index, { allowed, ticket, delayMs }] of decisions.entries()) {
      const entry = entries[index]!;
      const units = { units: entry.cost, ticket, chargedAt: now };
      if (allowed) this.claims.add(claimKeyOf(entry, id), units, delayMs * 1000, keep);
    }
    return decisions;
  }

  private take(entries: readonly ReserveEntry[], now: number): StoreDecision[] {
    const views = entries.map((entry) => this.viewFor(entry, now));
    const charges = !isRefusal(entries[0]!.limit, views[0]!);
    return views.map((view) => this.charge(view, charges));
  }

  private viewFor(reservation: ReserveEntry, now: number): View {
    const view = viewOf(this.table, reservation, now);
    view.cost = reservation.cost;
    if (reservation.limit.adapts) tellAsker(view, reservation, this.load, reservation.cost === 0);
    evaluateReservation(view, Math.floor(reservation.maxWaitMs * 1000), reservation.claim !== undefined);
    return view;
  }

  private charge(view: View, charges: boolean): StoreDecision {
    const { algorithm, parameters } = view.limit;
    const decision = this.counters.commit(view, charges, MODES.reserve);
    if (view.allowed && charges && view.cost > 0) {
      decision.delayMs = toMs(view.delay ?? 0);
      const ticket = algorithm.reservation?.debtClearedAt(parameters, view.state);
      if (ticket !== undefined) decision.ticket = ticket;
    }
    return decision;
  }
}

function claimKeyOf({ limit, identity }: Counter, id: string): string {
  return `${counterId(limit, identity)}\n${id}`;
}
