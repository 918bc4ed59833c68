import type { CheckEntry } from '../limits/counter.js';
import { PromisedAnswer } from '../stores/promised-answer.js';
import { checkResultOf } from '../stores/store-decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { type LeasedCheckResult, withLease } from './lease.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/** The result of a check that code gets. */
export class CallerAnswers extends PromisedAnswer<LeasedCheckResult> {
  constructor(
    private readonly entries: readonly CheckEntry[],
    private readonly store: Store,
    private readonly queues: WaitQueues,
  ) {
    super();
  }

  protected made(answers: StoreDecision[]): LeasedCheckResult {
    const result: LeasedCheckResult = checkResultOf(answers, this.entries);
    if (!result.allowed) return result;
    for (let i = 0; i < answers.length; i++) {
      const entry = this.entries[i]!;
      if (entry.limit.algorithm.leases === undefined) continue;
      result.decisions[i] = withLease(result.decisions[i]!, answers[i]!, entry, this.store, this.queues);
    }
    return result;
  }
}
