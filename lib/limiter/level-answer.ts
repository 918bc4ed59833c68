import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { toCheckResult } from '../limits/check-result.js';
import type { CheckEntry } from '../limits/counter.js';
import { PromisedAnswer } from '../stores/promised-answer.js';
import { heldOf, toCallerDecision } from '../stores/store-decision.js';
import type { Store, StoreDecision } from '../stores/store.js';
import { Lease, type LeasedDecision } from './lease.js';
import type { WaitQueues } from '../waiting/wait-queues.js';

/** The decision that code gets for a limit and all limits it is within. */
export class LevelAnswer extends PromisedAnswer<LeasedDecision> {
  constructor(
    private readonly entries: readonly CheckEntry[],
    private readonly peek: boolean,
    private readonly store: Store,
    private readonly queues: WaitQueues,
  ) {
    super();
  }

  protected made(answers: StoreDecision[]): LeasedDecision {
    return levelDecision(answers, this.entries, this.store, this.queues, this.peek);
  }
}

/** Combines the decisions of all levels: the one that binds most, with all of them and a lease of what they hold. */
export function levelDecision(
  answers: readonly StoreDecision[],
  entries: readonly CheckEntry[],
  store: Store,
  queues: WaitQueues,
  peek = false,
): LeasedDecision {
  const told = answers.map((answer, index) => toCallerDecision(answer, entries[index]!.limit));
  const { allowed, decisions, tightest, delayMs } = toCheckResult(told, entries);
  const decision: LeasedDecision = { ...tightest, allowed, delayMs, levels: decisions };
  if (peek || !allowed || !entries.some(({ limit }) => limit.algorithm.leases !== undefined)) return decision;
  const held = entries.flatMap((entry, index) => heldOf(entry, answers[index]!) ?? []);
  return { ...decision, lease: new Lease(held, store, queues) };
}

/** Refuses limits whose units are leased, which cannot be settled. Throws `RateLimitArgumentError`. */
export function refuseHeldEntries(entries: readonly CheckEntry[]): void {
  for (const { limit } of entries) {
    if (limit.algorithm.leases === undefined) continue;
    throw new RateLimitArgumentError(messages.onlyHeld(limit.name, limit.algorithm.name, 'reserved'));
  }
}
