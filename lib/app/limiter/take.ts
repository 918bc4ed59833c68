import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { upToMessages } from '../../engine/errors/messages/calls.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { takenOf } from '../../storage/stores/store-decision.js';
import { leasedResult, type Making } from './caller-answer.js';
import type { LeasedCheckResult } from './lease.js';

/**
 * Turns the decisions of a check with `upTo` into the result for the caller, including the number of units taken, which is the same for all
 * limits.
 */
export function taking<T>(make: Making<T>): Making<T> {
  return (answers, entries, ...others) => {
    const taken = takenOf(entries, answers);
    return make(
      answers.map((answer) => ({ ...answer, taken })),
      entries,
      ...others,
    );
  };
}

/** The result of a check of several limits with `upTo`. */
export const takenResult: Making<LeasedCheckResult> = taking((answers, ...others) => {
  const { taken = 0 } = answers[0]!;
  return { ...leasedResult(answers, ...others), taken };
});

/** Throws `RateLimitArgumentError` for limits whose units are held until they are released. */
export function refuseHeldUnits(entries: readonly CheckEntry[]): void {
  for (const { limit } of entries) {
    const { algorithm, name } = limit;
    if (algorithm.leases !== undefined)
      throw new RateLimitArgumentError(upToMessages.held(name, algorithm.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
  }
}
