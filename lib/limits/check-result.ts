import type { CompiledLimit } from './compiled-limit.js';
import type { CheckResult, Decision } from './decision.js';

/** Sums up the decisions of `limits`, which are in the same order and at least one. */
export function toCheckResult(decisions: Decision[], limits: readonly CompiledLimit[]): CheckResult {
  const enforced = decisions.filter((_, index) => !limits[index]!.shadow);
  const refused = decisions.filter((decision, index) => isRefusal(limits[index]!, decision));
  const allowed = refused.length === 0;
  const tightest = allowed
    ? (enforced.length > 0 ? enforced : decisions).reduce(tighter)
    : refused.reduce((one, other) => (other.retryAfterMs > one.retryAfterMs ? other : one));
  const delayMs = allowed ? enforced.reduce((longest, decision) => Math.max(longest, decision.delayMs), 0) : 0;
  return { allowed, decisions, tightest, delayMs };
}

/** Whether a decision refuses its request: a shadow limit only reports. */
export function isRefusal({ shadow }: Pick<CompiledLimit, 'shadow'>, { allowed }: Pick<Decision, 'allowed'>): boolean {
  return !allowed && !shadow;
}

/** Of two decisions that both allow, the one that leaves less. */
export function tighter(one: Decision, other: Decision): Decision {
  if (other.remaining !== one.remaining) return other.remaining < one.remaining ? other : one;
  return other.resetAfterMs > one.resetAfterMs ? other : one;
}
