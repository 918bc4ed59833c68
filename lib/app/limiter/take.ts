import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { upToMessages } from '../../engine/errors/messages/up-to.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { takenOf } from '../../storage/stores/store-decision.js';
import { leasedResult, type Making } from './caller-answer.js';
import type { LeasedCheckResult } from './lease.js';

/** What code gets from the decisions of a check that takes as many units as there are: with the number that it took, of all limits. */
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

/** The result of a check of several limits that takes as many units as there are. */
export const takenResult: Making<LeasedCheckResult> = taking((answers, ...others) => {
  const { taken = 0 } = answers[0]!;
  return { ...leasedResult(answers, ...others), taken };
});

/** Refuses limits whose units are held until they are released. Throws `RateLimitArgumentError`. */
export function refuseHeldUnits(entries: readonly CheckEntry[]): void {
  for (const { limit } of entries) {
    const { algorithm, name } = limit;
    if (algorithm.leases !== undefined)
      throw new RateLimitArgumentError(upToMessages.held(name, algorithm.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
  }
}
