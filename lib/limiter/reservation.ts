import { assertActual } from '../limits/arguments.js';
import type { Decision } from '../limits/decision.js';
import type { Refund, Store } from '../stores/store.js';
import { settle } from './settlement.js';

/** Units that were reserved, if need be for a time in the future: `delayMs` is the wait until they may be used. */
export class Reservation implements Decision {
  readonly allowed: boolean;
  readonly limit: string;
  readonly quota: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly source: Decision['source'];
  // Private in the language, too: a reservation can be logged or sent as it is.
  readonly #taken: Refund | undefined;
  readonly #store: Store;
  #ended = false;

  /** @internal */
  constructor(decision: Decision, taken: Refund | undefined, store: Store) {
    this.#taken = taken;
    this.#store = store;
    this.allowed = decision.allowed;
    this.limit = decision.limit;
    this.quota = decision.quota;
    this.remaining = decision.remaining;
    this.retryAfterMs = decision.retryAfterMs;
    this.resetAfterMs = decision.resetAfterMs;
    this.delayMs = decision.delayMs;
    this.source = decision.source;
  }

  /**
   * Refunds the units, at any time, except for what later reservations are built on. Does nothing if they were refused,
   * cancelled or settled before. Rejects with `RateLimitStoreError`.
   */
  async cancel(): Promise<void> {
    const taken = this.take();
    if (taken !== undefined) await this.#store.refund([taken]);
  }

  /**
   * Replaces the reserved units by the actual ones, once they are known: surplus units are refunded, missing ones are charged,
   * up to one quota more than there is. Does nothing if they were refused, cancelled or settled before. Rejects with
   * `RateLimitArgumentError` or `RateLimitStoreError`.
   *
   * @param actual units: a whole number >= 0
   */
  async settle(actual: number): Promise<void> {
    assertActual(actual);
    const taken = this.take();
    if (taken !== undefined) await settle(this.#store, taken, actual);
  }

  /** The reserved units, the first time. */
  private take(): Refund | undefined {
    const taken = this.#ended ? undefined : this.#taken;
    this.#ended = true;
    return taken;
  }
}
