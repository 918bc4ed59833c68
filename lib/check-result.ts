import type { CompiledLimit } from './algorithms/limit.js';
import type { CheckResult, Decision, StoreDecision } from './stores/store.js';

/** Sums up the decisions of `limits`, which are in the same order and at least one. */
export function toCheckResult(answers: readonly StoreDecision[], limits: readonly CompiledLimit[]): CheckResult {
  const decisions = answers.map(toDecision);
  const enforced = decisions.filter((_, index) => limits[index]?.shadow !== true);
  const refused = enforced.filter((decision) => !decision.allowed);
  const allowed = refused.length === 0;
  const tightest = allowed
    ? (enforced.length > 0 ? enforced : decisions).reduce(tighter)
    : refused.reduce((one, other) => (other.retryAfterMs > one.retryAfterMs ? other : one));
  const delayMs = allowed ? enforced.reduce((longest, decision) => Math.max(longest, decision.delayMs), 0) : 0;
  return { allowed, decisions, tightest, delayMs };
}

/** Only what users are told: the place in a queue is the store's own. */
export function toDecision(answer: StoreDecision): Decision {
  const { place: _, ...decision } = answer;
  return decision;
}

function tighter(one: Decision, other: Decision): Decision {
  if (other.remaining !== one.remaining) return other.remaining < one.remaining ? other : one;
  return other.resetAfterMs > one.resetAfterMs ? other : one;
}
