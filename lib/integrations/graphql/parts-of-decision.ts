import { ticketBefore } from '../../app/limiter/settlement.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import type { StoreDecision } from '../../storage/stores/store.js';

/** What one of several calls asked of a counter, and what it got. */
interface DecidedPart {
  readonly entry: RuleEntry;
  readonly decision: StoreDecision;
}

/**
 * Shares one decision among the calls that it was made for, so that each can give back its own units. Leased units cannot be shared:
 * the first call gets them all.
 */
export function partsOfDecision(
  sum: RuleEntry,
  decision: StoreDecision,
  parts: readonly { readonly entry: RuleEntry }[],
): DecidedPart[] {
  if (parts.length === 1) return [{ entry: sum, decision }];
  const { limit } = sum;
  const isLeased = limit.algorithm.leases !== undefined;
  let after = sum.cost;
  return parts.map(({ entry }, index) => {
    if (isLeased) {
      if (index === 0) return { entry: { ...entry, limit, cost: sum.cost }, decision };
      return { entry: { ...entry, limit }, decision: withTicket(decision, undefined, undefined) };
    }
    after -= entry.cost;
    const { candidate } = decision;
    const ticket = ticketBefore(limit, decision.ticket, after);
    const ofCandidate = limit.candidate && ticketBefore(limit.candidate, candidate?.ticket, after);
    return { entry: { ...entry, limit }, decision: withTicket(decision, ticket, ofCandidate) };
  });
}

function withTicket(
  { ticket: _, candidate, ...decision }: StoreDecision,
  ticket: number | undefined,
  ofCandidate: number | undefined,
): StoreDecision {
  const own: StoreDecision = ticket === undefined ? decision : { ...decision, ticket };
  return candidate === undefined ? own : { ...own, candidate: withTicket(candidate, ofCandidate, undefined) };
}
