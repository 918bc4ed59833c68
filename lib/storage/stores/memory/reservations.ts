import type { ProcessLoad } from '../../../engine/algorithms/algorithm.js';
import { isRefusal } from '../../../engine/limits/decision.js';
import { type Counter, counterId, startsOf } from '../../../engine/limits/counter.js';
import { claimedDecision } from '../store-decision.js';
import type { Claim, ClaimEnd, ReserveEntry, StoreDecision } from '../store.js';
import { Claims, type GivenBack } from './claims.js';
import type { CounterTable } from './counter-table.js';
import { type View, viewOf } from './counter-view.js';
import { type Counters, MODES } from './counters.js';
import { evaluateReservation, tellAsker, toMs } from './evaluation.js';

/** Takes units of a limit and its candidate that may be available later. With a claim, takes them only once. */
export class Reservations {
  private readonly claims = new Claims();

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

  /** Ends a claim. Returns the units to refund, if there are any. */
  release(counter: Counter, { id, isSpent }: ClaimEnd, now: number): GivenBack | undefined {
    return this.claims.release(claimKeyOf(counter, id), now, !isSpent);
  }

  /** Forgets all claims. */
  clear(): void {
    this.claims.clear();
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
