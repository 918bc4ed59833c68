import type { CheckEntry } from '../limits/counter.js';
import { PromisedAnswer } from '../stores/promised-answer.js';
import { toCallerDecision } from '../stores/store-decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { type LeasedDecision, withLease } from './lease.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/** The decision that code gets. */
export class CallerAnswer extends PromisedAnswer<LeasedDecision> {
  constructor(
    private readonly entry: CheckEntry,
    private readonly peek: boolean,
    private readonly store: Store,
    private readonly queues: WaitQueues,
  ) {
    super();
  }

  protected made(decisions: StoreDecision[]): LeasedDecision {
    const { limit } = this.entry;
    const answer = decisions[0]!;
    const decision = toCallerDecision(answer, limit);
    if (this.peek || limit.algorithm.leases === undefined) return decision;
    return withLease(decision, answer, this.entry, this.store, this.queues);
  }
}
