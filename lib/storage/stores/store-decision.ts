import {
  type CheckedLimit,
  type CheckResult,
  type Decision,
  hide,
  toCheckResult,
} from '../../engine/limits/decision.js';
import { algorithms } from '../../engine/algorithms/index.js';
import { argumentError, RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { Check, HeldLease, Refund, StoreDecision } from './store.js';

/** The error of a call for the history of a limit whose algorithm keeps none. */
export function noHistory({ name }: { readonly name: string }): RateLimitArgumentError {
  return argumentError('SLUICE_UNSUPPORTED_CALL', messages.noHistory(name, algorithms.withAny('history')));
}

/** The charge of a decision for an entry: everything that is needed to refund it, settle it or hold it later. */
export function chargeOf(
  { limit, identity, cost }: CheckEntry,
  { ticket, chargedAt, source, candidate, taken: units = cost }: StoreDecision,
): Refund {
  return { limit, identity, units, ticket, chargedAt, source, candidate };
}

/** The units that a check with `upTo` took: those of the limit with the fewest left. A store that ignores `upTo` took all or none. */
export function takenOf(entries: readonly CheckEntry[], decisions: readonly StoreDecision[]): number {
  let least = entries[0]!.cost;
  for (let i = 0; i < entries.length; i++) {
    const { limit } = entries[i]!;
    const decision = decisions[i]!;
    if (limit.shadow) continue;
    if (!decision.allowed) return 0;
    least = Math.min(least, decision.taken ?? least);
  }
  return least;
}

/** The entries of a check with their actual cost, for counting: the units that it took, or 1 if it was rejected with `upTo`. */
export function decidedEntries(
  { entries, upTo = false }: Pick<Check, 'entries' | 'upTo'>,
  decisions: readonly StoreDecision[],
): readonly CheckEntry[] {
  if (!upTo) return entries;
  const cost = Math.max(1, takenOf(entries, decisions));
  return entries.map((entry) => ({ ...entry, cost }));
}

/** The charge of units that are held until they are released, if there is one. An entry that a list lets pass holds nothing. */
export function heldOf(entry: CheckEntry, decision: StoreDecision): HeldLease | undefined {
  const { limit, cost } = entry;
  const { allowed, source, ticket } = decision;
  if (limit.algorithm.leases === undefined || limit.off || !allowed || source === 'list' || cost === 0)
    return undefined;
  return ticket === undefined ? undefined : { ...chargeOf(entry, decision), ticket };
}

/** Returns true if units were reserved at an estimate. They are only refunded by settling them. */
export function isEstimate({ limit, ticket, chargedAt }: Refund): boolean {
  return limit.estimates !== undefined && ticket !== undefined && chargedAt !== undefined;
}

/** The charges of a check that was allowed. Limits that are switched off charge nothing. */
export function chargesOf(entries: readonly CheckEntry[], decisions: readonly StoreDecision[]): Refund[] {
  return entries.flatMap((entry, index) => {
    const decision = decisions[index]!;
    return decision.allowed && !entry.limit.off ? [chargeOf(entry, decision)] : [];
  });
}

/** The part of a decision that users get. Tickets, times of charges and candidates' decisions are internal to the store. */
export function toDecision(answer: StoreDecision): Decision {
  if (answer.ticket === undefined && answer.chargedAt === undefined && answer.candidate === undefined) return answer;
  const { allowed, limit, quota, remaining, retryAfterMs, resetAfterMs, delayMs, source, offences, inFlight, credits } =
    answer;
  const decision: Decision = { allowed, limit, quota, remaining, retryAfterMs, resetAfterMs, delayMs, source };
  if (offences !== undefined) decision.offences = offences;
  if (inFlight !== undefined) decision.inFlight = inFlight;
  if (credits !== undefined) decision.credits = credits;
  if (answer.tried !== undefined) decision.tried = answer.tried;
  if (answer.taken !== undefined) decision.taken = answer.taken;
  return decision;
}

/** The decision that code gets. A shadow limit always allows it without a wait. */
export function toCallerDecision(answer: StoreDecision, { shadow, hidden }: CompiledLimit): Decision {
  const decision = toDecision(answer);
  const own = shadow ? { ...decision, allowed: true, retryAfterMs: 0, delayMs: 0 } : decision;
  return hidden ? hide(own) : own;
}

/** The decision that lets a request pass uncounted, such as that about a limit that is switched off. It involves no store. */
export function openDecision({ name, quota }: CompiledLimit): StoreDecision {
  const waits = { retryAfterMs: 0, resetAfterMs: 0, delayMs: 0 };
  return { allowed: true, limit: name, quota, remaining: quota, ...waits, source: 'memory' };
}

/** The decision about units that were claimed before and can be used after this many milliseconds. */
export function claimedDecision(
  { name, quota }: CompiledLimit,
  delayMs: number,
  source: StoreDecision['source'],
): StoreDecision {
  const waits = { retryAfterMs: 0, resetAfterMs: delayMs, delayMs };
  return { allowed: true, limit: name, quota, remaining: 0, ...waits, source, wasClaimed: true };
}

/** Combines the decisions of stores about limits, in the same order. There is at least one. */
export function checkResultOf(answers: readonly StoreDecision[], checked: readonly CheckedLimit[]): CheckResult {
  const decisions = answers.map(toDecision);
  for (let i = 0; i < decisions.length; i++) if (checked[i]!.limit.hidden) hide(decisions[i]!);
  return toCheckResult(decisions, checked);
}
