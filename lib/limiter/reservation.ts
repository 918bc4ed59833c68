import { assertActual } from '../limits/arguments.js';
import type { Decision } from '../limits/decision.js';
import type { Refund, Store } from '../stores/store.js';

/** Units that were taken, if need be from the future: `delayMs` says how long to wait before they may be used. */
export class Reservation implements Decision {
  readonly allowed: boolean;
  readonly limit: string;
  readonly quota: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly source: Decision['source'];
  // Private in the language, too: what it says can be logged or sent as it is.
  readonly #taken: Refund | undefined;
  readonly #store: Store;
  #done = false;

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
   * Gives the units back, except what others reserved behind them, at whatever time. Does nothing if they were refused, cancelled or settled
   * before. Rejects with `RateLimitStoreError`.
   */
  async cancel(): Promise<void> {
    const taken = this.take();
    if (taken !== undefined) await this.#store.refund([taken]);
  }

  /**
   * Tells what the units really were, once that is known: what was too much is given back, what was too little is charged,
   * up to one quota more than there is. Does nothing if they were refused, cancelled or settled before. Rejects with
   * `RateLimitArgumentError` or `RateLimitStoreError`.
   *
   * @param actual a whole number >= 0
   */
  async settle(actual: number): Promise<void> {
    assertActual(actual);
    const taken = this.take();
    if (taken !== undefined) await settle(this.#store, taken, actual);
  }

  /** What was taken, once. */
  private take(): Refund | undefined {
    const taken = this.#done ? undefined : this.#taken;
    this.#done = true;
    return taken;
  }
}

/** Charges or gives back the difference between what was taken and what it really was. */
export async function settle(store: Store, taken: Refund, actual: number): Promise<void> {
  const { limit, ticket } = taken;
  const tooMuch = taken.units - actual;
  const before =
    ticket && actual > 0 ? limit.algorithm.queue?.ticketBefore(limit.parameters, ticket, actual) : undefined;
  if (tooMuch > 0) await store.refund([{ ...taken, units: tooMuch, ticket: before ?? ticket }]);
  if (tooMuch < 0) await store.penalize({ ...taken, units: -tooMuch });
}
