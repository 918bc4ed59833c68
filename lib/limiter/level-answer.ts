import { RateLimitArgumentError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { toCheckResult } from '../limits/check-result.js';
import type { CheckEntry } from '../limits/counter.js';
import { PromisedAnswer } from '../stores/promised-answer.js';
import { toCallerDecision } from '../stores/store-decision.js';
import type { HeldLease, Store, StoreDecision } from '../stores/store.js';
import { Lease, type LeasedDecision } from './lease.js';
import type { WaitQueues } from './wait-queues.js';

/** The decision that code is told of a limit and of all that it is within. */
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

/** Sums up what all levels said: the decision that binds most, with all of them and a lease of what they hold. */
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
  if (peek || !allowed || !entries.some(({ limit }) => limit.algorithm.holding !== undefined)) return decision;
  return { ...decision, lease: new Lease(heldBy(answers, entries), store, queues) };
}

/** What levels hold. A list that lets somebody pass holds nothing, and a shadow limit that would have refused does not either. */
function heldBy(answers: readonly StoreDecision[], entries: readonly CheckEntry[]): HeldLease[] {
  return entries.flatMap(({ limit, identity, cost: units }, index) => {
    const { allowed, ticket, source, candidate } = answers[index]!;
    const isHeld = limit.algorithm.holding !== undefined && !limit.off && allowed && source !== 'list';
    if (!isHeld || ticket === undefined) return [];
    return [{ limit, identity, units, ticket, source, ...(candidate && { candidate }) }];
  });
}

/** Refuses limits whose units are leased, which are settled by no number. Throws `RateLimitArgumentError`. */
export function refuseHeldEntries(entries: readonly CheckEntry[]): void {
  for (const { limit } of entries) {
    if (limit.algorithm.holding === undefined) continue;
    throw new RateLimitArgumentError(messages.onlyHeld(limit.name, limit.algorithm.name, 'reserved'));
  }
}
