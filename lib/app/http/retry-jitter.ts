import type { CheckResult, Decision } from '../../engine/limits/decision.js';

/** A refusal as its headers describe it: each wait is `1 + share` times as long, so that clients do not all come back at once. */
export function spreadWaits(result: CheckResult, share: number): CheckResult {
  const decisions = result.decisions.map((decision): Decision =>
    decision.allowed ? decision : { ...decision, retryAfterMs: decision.retryAfterMs * (1 + share) },
  );
  const tightest = decisions[result.decisions.indexOf(result.tightest)] ?? result.tightest;
  return { ...result, decisions, tightest };
}
