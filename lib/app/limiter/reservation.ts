import { argumentError, RateLimitArgumentError } from '../../engine/errors/errors.js';
import { holdMessages } from '../../engine/errors/messages/calls.js';
import { assertActual } from '../../engine/limits/arguments.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { type CheckResult, type Decision, hide, isHidden, toCheckResult } from '../../engine/limits/decision.js';
import { chargeOf, isEstimate, toCallerDecision } from '../../storage/stores/store-decision.js';
import type { Refund, Store, StoreDecision } from '../../storage/stores/store.js';
import type { WaitQueues } from '../waiting/wait-queues.js';
import { settle } from './settlement.js';

/**
 * Reserved units. Those of a bucket may be for a future time: `delayMs` is the wait until they can be used. Those of a limit with a `hold`
 * are an estimate that counts until it is settled.
 */
export class Reservation implements Decision {
  readonly allowed: boolean;
  readonly limit: string;
  readonly quota: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly source: Decision['source'];
  /** For a limit with `credits`: the remaining credits. */
  readonly credits?: number;
  /** For a limit with parents: the decision at each level. */
  readonly levels?: Decision[];
  /** Identifies the reservation for `Limiter.settle`, from any process; absent for rejections, and for limits without a `hold`. */
  readonly id: string | undefined;
  // Private at run time as well, so that a reservation can be logged or sent.
  readonly #taken: readonly Refund[];
  readonly #store: Store;
  readonly #queues: WaitQueues | undefined;
  #ended = false;

  /** @internal */
  constructor(decision: Decision, taken: Refund | readonly Refund[] | undefined, store: Store, queues?: WaitQueues) {
    this.#taken = taken === undefined ? [] : 'limit' in taken ? [taken] : taken;
    this.#store = store;
    this.#queues = queues;
    this.allowed = decision.allowed;
    this.limit = decision.limit;
    this.quota = decision.quota;
    this.remaining = decision.remaining;
    this.retryAfterMs = decision.retryAfterMs;
    this.resetAfterMs = decision.resetAfterMs;
    this.delayMs = decision.delayMs;
    this.source = decision.source;
    // Several levels can only be settled together, through this object.
    this.id = this.#taken.length === 1 ? reservationId(this.#taken[0]) : undefined;
    if (decision.credits !== undefined) this.credits = decision.credits;
    if (decision.levels !== undefined) this.levels = decision.levels;
    if (isHidden(decision)) hide(this);
  }

  /**
   * Refunds the units, at any time, except those that later reservations depend on. Has no effect if they were rejected, cancelled or
   * settled before. Rejects with `RateLimitStoreError`.
   */
  async cancel(): Promise<void> {
    await this.giveBack(this.take());
  }

  /**
   * Replaces the reserved units with the units actually used, once they are known. Surplus units are refunded. Missing units are charged
   * even beyond the limit: up to one quota, or all of them for a limit with a `hold`. Held units are corrected in the window in which they
   * were reserved, even after their hold has lapsed. Has no effect if they were rejected, cancelled or settled before, by any process.
   * Rejects with `RateLimitArgumentError` or `RateLimitStoreError`; held units can be settled again then.
   *
   * @param actual units: a whole number >= 0
   */
  async settle(actual: number): Promise<void> {
    assertActual(actual);
    const taken = this.take();
    const held = taken.filter(isEstimate).map((each) => ({ ...each, actual }));
    const others = taken.filter((each) => !isEstimate(each)).map((each) => settle(this.#store, each, actual));
    await Promise.all([this.giveBack(held), ...others]);
  }

  private async giveBack(refunds: readonly Refund[]): Promise<void> {
    const taken = refunds.filter((refund) => refund.units > 0 || isEstimate(refund));
    if (taken.length === 0) return;
    await this.#store.refund(taken);
    for (const refund of refunds) if (isEstimate(refund)) this.#queues?.wake(refund);
  }

  /** The reserved units, for the first call only. The store itself makes sure that held units are settled once. */
  private take(): readonly Refund[] {
    const taken = this.#ended ? this.#taken.filter(isEstimate) : this.#taken;
    this.#ended = true;
    return taken;
  }
}

/** Units of several limits that were reserved together: of all limits, or, if one rejected, of none. */
export class ReservedCheck implements CheckResult {
  readonly allowed: boolean;
  /** One reservation for each limit, in the order of the limits. */
  readonly decisions: Reservation[];
  readonly tightest: Reservation;
  readonly delayMs: number;

  /** @internal */
  constructor(entries: readonly CheckEntry[], answers: readonly StoreDecision[], store: Store, queues: WaitQueues) {
    const { allowed, decisions, tightest, delayMs } = toCheckResult(
      answers.map((answer, index) => toCallerDecision(answer, entries[index]!.limit)),
      entries,
    );
    this.allowed = allowed;
    this.delayMs = delayMs;
    this.decisions = decisions.map((decision, index) => {
      const entry = entries[index]!;
      const answer = answers[index]!;
      const taken = allowed && answer.allowed && !entry.limit.off ? chargeOf(entry, answer) : undefined;
      return new Reservation(decision, taken, store, queues);
    });
    this.tightest = this.decisions[decisions.indexOf(tightest)]!;
  }

  /**
   * Replaces the reserved units with the units actually used, as `settle` of each reservation does.
   *
   * @param actual units of each limit, in the order of the limits: whole numbers >= 0
   */
  async settle(actual: readonly number[]): Promise<void> {
    const { decisions } = this;
    if (!Array.isArray(actual) || actual.length !== decisions.length) {
      throw argumentError('SLUICE_INVALID_COST', holdMessages.wrongActuals(actual, decisions.length));
    }
    const units: readonly number[] = actual;
    for (const each of units) assertActual(each);
    await Promise.all(decisions.map((reservation, index) => reservation.settle(units[index]!)));
  }

  /** Refunds the units of all limits. */
  async cancel(): Promise<void> {
    await Promise.all(this.decisions.map((reservation) => reservation.cancel()));
  }
}

/** The store with the held units, by the letter in an id. */
const SOURCES: Readonly<Record<string, Decision['source']>> = { r: 'redis', m: 'memory', f: 'fallback' };
/** The last part is for a candidate that was charged at the same time: the ticket of its hold, if it has one. */
const FORM = /^([0-9a-z]{1,11})-([0-9a-z]{1,11})-([0-9a-z]{1,11})-([rmf])(?:-([0-9a-z]{0,11}))?$/;
const RADIX = 36;

/** The data needed to find held units from any process. */
type Held = Pick<Refund, 'ticket' | 'units' | 'chargedAt' | 'source' | 'candidate'>;

function reservationId(taken: Refund | undefined): string | undefined {
  if (taken === undefined || !isEstimate(taken)) return undefined;
  const letter = Object.entries(SOURCES).find(([, source]) => source === taken.source)?.[0] ?? 'r';
  const numbers = [taken.ticket!, taken.units, taken.chargedAt!];
  const parts = [...numbers.map((number) => number.toString(RADIX)), letter];
  if (taken.candidate?.allowed === true) parts.push(taken.candidate.ticket?.toString(RADIX) ?? '');
  return parts.join('-');
}

/** Reads an id. Throws `RateLimitArgumentError`. */
export function readReservationId(id: unknown): Held {
  const [, ...parts] = (typeof id === 'string' && FORM.exec(id)) || [];
  const [ticket, units, chargedAt] = parts.slice(0, 3).map((part) => Number.parseInt(part, RADIX));
  const ofCandidate = parts[4] === undefined || parts[4] === '' ? undefined : Number.parseInt(parts[4], RADIX);
  const isValid = [ticket, units, chargedAt, ofCandidate ?? 0].every((number) => Number.isSafeInteger(number));
  if (!isValid || units! < 1) throw new RateLimitArgumentError(holdMessages.wrongReservation(id));
  const held = { ticket: ticket!, units: units!, chargedAt: chargedAt!, source: SOURCES[parts[3]!] };
  // The limit and its candidate were charged in one call.
  if (parts[4] === undefined) return held;
  return { ...held, candidate: { allowed: true, chargedAt: chargedAt!, ...(ofCandidate && { ticket: ofCandidate }) } };
}
