import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { holdMessages } from '../../engine/errors/messages/calls.js';
import { assertActual } from '../../engine/limits/arguments.js';
import { type CheckResult, toCheckResult } from '../../engine/limits/decision.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { chargeOf, toCallerDecision } from '../../storage/stores/store-decision.js';
import type { Store, StoreDecision } from '../../storage/stores/store.js';
import { Reservation } from './reservation.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

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
      throw new RateLimitArgumentError(holdMessages.wrongActuals(actual, decisions.length), {
        code: 'SLUICE_INVALID_COST',
      });
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
