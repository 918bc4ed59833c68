import type { CompiledLimit } from './compiled-limit.js';
import type { Charge, CheckResult, Decision, Refund, StoreDecision } from '../stores/store.js';

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

/** What gives units back that a decision charged: those alone, and where they were charged. */
export function refundOf({ limit, identity, units }: Charge, { place, at, source }: StoreDecision): Refund {
  return { limit, identity, units, place, at, source };
}

/** Only what users are told: places and times are the store's own. */
export function toDecision(answer: StoreDecision): Decision {
  if (answer.place === undefined && answer.at === undefined) return answer;
  const { place: _place, at: _at, ...decision } = answer;
  return decision;
}

/** What code is told, which acts on nothing else: a shadow limit lets it go on at once. */
export function toCallerDecision(answer: StoreDecision, { shadow }: CompiledLimit): Decision {
  const decision = toDecision(answer);
  return shadow ? { ...decision, allowed: true, retryAfterMs: 0, delayMs: 0 } : decision;
}

/** Of two decisions that both allow, the one that leaves less. */
export function tighter(one: Decision, other: Decision): Decision {
  if (other.remaining !== one.remaining) return other.remaining < one.remaining ? other : one;
  return other.resetAfterMs > one.resetAfterMs ? other : one;
}
