import type { CompiledLimit } from './compiled-limit.js';
import type { CheckResult, Decision } from './decision.js';

/** A limit that was checked. */
export interface CheckedLimit {
  readonly limit: CompiledLimit;
}

/** Combines the decisions of limits, which are in the same order. There must be at least one. */
export function toCheckResult(decisions: Decision[], checked: readonly CheckedLimit[]): CheckResult {
  let enforced: Decision | undefined;
  let refused: Decision | undefined;
  let delayMs = 0;
  for (let i = 0; i < decisions.length; i++) {
    const decision = decisions[i]!;
    if (checked[i]!.limit.shadow) continue;
    enforced = enforced === undefined ? decision : tighter(enforced, decision);
    delayMs = Math.max(delayMs, decision.delayMs);
    if (decision.allowed) continue;
    if (refused === undefined || decision.retryAfterMs > refused.retryAfterMs) refused = decision;
  }
  if (refused !== undefined) return { allowed: false, decisions, tightest: refused, delayMs: 0 };
  return { allowed: true, decisions, tightest: enforced ?? decisions.reduce(tighter), delayMs };
}

/** Returns true if a decision rejects its request. A shadow limit only reports. */
export function isRefusal({ shadow }: Pick<CompiledLimit, 'shadow'>, { allowed }: Pick<Decision, 'allowed'>): boolean {
  return !allowed && !shadow;
}

/** Returns the one of two allowing decisions that leaves fewer units. */
export function tighter(one: Decision, other: Decision): Decision {
  if (other.remaining !== one.remaining) return other.remaining < one.remaining ? other : one;
  return other.resetAfterMs > one.resetAfterMs ? other : one;
}
