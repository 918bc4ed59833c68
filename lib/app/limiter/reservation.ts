import { assertActual } from '../../engine/limits/arguments.js';
import { type Decision, hide, isHidden } from '../../engine/limits/decision.js';
import { isEstimate } from '../../storage/stores/store-decision.js';
import type { Refund, Store } from '../../storage/stores/store.js';
import { reservationId } from './reservation-id.js';
import { settle } from './settlement.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

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
