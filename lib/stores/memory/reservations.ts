import type { ProcessLoad } from '../../algorithms/algorithm.js';
import { isRefusal } from '../../limits/check-result.js';
import { type Counter, counterId } from '../../limits/counter.js';
import { claimedDecision } from '../store-decision.js';
import type { Claim, ClaimEnd, ReserveEntry, StoreDecision } from '../store.js';
import { Claims, type GivenBack } from './claims.js';
import type { CounterTable } from './counter-table.js';
import { type View, viewOf } from './counter-view.js';
import { type Counters, MODES } from './counters.js';
import { evaluateReservation, tellAsker, toMs } from './evaluation.js';

/** Takes units that may be there later, of a limit and its candidate; for a claim, once. */
export class Reservations {
  private readonly claims = new Claims();

  constructor(
    private readonly table: CounterTable,
    private readonly counters: Counters,
    /** How busy the process is, for limits that adapt. */
    private readonly load: ProcessLoad,
  ) {}

  make(reservation: ReserveEntry, now: number): StoreDecision {
    const { claim } = reservation;
    return claim === undefined ? this.take(reservation, now) : this.takeOnce(reservation, claim, now);
  }

  /** Ends a claim. Tells what comes back, if anything does. */
  release(counter: Counter, { id, isSpent }: ClaimEnd, now: number): GivenBack | undefined {
    return this.claims.release(claimKeyOf(counter, id), now, !isSpent);
  }

  /** Forgets all claims. */
  clear(): void {
    this.claims.clear();
  }

  private takeOnce(reservation: ReserveEntry, { id, keepMs, looks = false }: Claim, now: number): StoreDecision {
    const { limit, cost: units } = reservation;
    const keep = Math.round(keepMs * 1000);
    const delay = this.claims.recall(claimKeyOf(reservation, id), now, keep);
    if (delay !== undefined) return claimedDecision(limit, toMs(delay), 'memory');
    if (looks) return this.counters.check({ entries: [reservation], peek: true }, now)[0]!;
    const decision = this.take(reservation, now);
    const { candidate } = decision;
    const note = (counter: Counter, { ticket, delayMs }: StoreDecision) =>
      this.claims.add(claimKeyOf(counter, id), { units, ticket, chargedAt: now }, delayMs * 1000, keep);
    if (decision.allowed) note(reservation, decision);
    if (candidate?.allowed === true && !isRefusal(limit, decision))
      note({ ...reservation, limit: limit.candidate! }, candidate);
    return decision;
  }

  private take(reservation: ReserveEntry, now: number): StoreDecision {
    const { limit } = reservation;
    const view = this.viewFor(reservation, now);
    const beside = limit.candidate && this.viewFor({ ...reservation, limit: limit.candidate }, now);
    const charges = !isRefusal(limit, view);
    const decision = this.charge(view, charges);
    if (beside !== undefined) decision.candidate = this.charge(beside, charges);
    return decision;
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
